"""What the CUDA engines share: parameters, launches, reasons, checked images."""
