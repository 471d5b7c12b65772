"""The store is where the settings or the system say, for its user alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.store.samples import python
from tilewise.settings import Settings
from tilewise.store.place import default_directory, private, untrusted

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")


def mode(path: Path) -> int:
    """Return a path's permissions."""
    return stat.S_IMODE(path.stat().st_mode)


def test_setting_comes_first(tmp_path: Path):
    """A directory that the settings name is taken."""
    assert tmp_path == default_directory(Settings(cache_dir=tmp_path))


def test_relative_setting_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A store does not move with the working directory of a later call."""
    monkeypatch.chdir(tmp_path)

    assert tmp_path / "store" == default_directory(Settings(cache_dir=Path("store")))


@posix
def test_system_cache_directory_is_the_default(monkeypatch: pytest.MonkeyPatch):
    """XDG's cache directory is followed."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")

    assert Path("/somewhere/tilewise") == default_directory(Settings())


@posix
def test_no_home_is_a_reason(monkeypatch: pytest.MonkeyPatch):
    """A user whom the system does not know and who has no HOME has no store."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    found = default_directory(Settings())

    assert str(found).startswith("the user has no ")
    assert str(found).endswith("; set TILEWISE_CACHE_DIR")


@posix
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_new_directories_are_private(tmp_path: Path, umask: int):
    """Whatever the umask, all directories that are made are 0700."""
    before = os.umask(umask)
    try:
        private(tmp_path / "a" / "b")
    finally:
        os.umask(before)

    assert [0o700, 0o700] == [mode(tmp_path / "a"), mode(tmp_path / "a" / "b")]


@posix
def test_existing_directory_keeps_its_mode(tmp_path: Path):
    """What others may have written into is not made to look trusted."""
    tmp_path.chmod(0o777)
    private(tmp_path)

    assert 0o777 == mode(tmp_path)


def test_file_in_the_way_is_a_reason(tmp_path: Path):
    """A file where the directory should be is said."""
    (tmp_path / "file").write_bytes(b"")

    assert "it is no directory" == private(tmp_path / "file")


@posix
def test_impossible_directory_is_a_reason():
    """A place where nothing can be made says why."""
    assert "it can't be made: Not a directory" == private(Path("/dev/null/store"))


@posix
@pytest.mark.parametrize(
    ("permissions", "expected"),
    [
        (0o700, None),
        (0o755, None),
        (0o775, "other users can write it"),
        (0o702, "other users can write it"),
    ],
)
def test_writable_by_others_is_untrusted(
    tmp_path: Path, permissions: int, expected: str | None
):
    """Native code is loaded only from where no other user can put it."""
    tmp_path.chmod(permissions)

    assert expected == untrusted(tmp_path)


@posix
def test_exchangeable_parent_is_untrusted(tmp_path: Path):
    """A directory above in which anyone can exchange entries is named."""
    (tmp_path / "store").mkdir(mode=0o700)
    tmp_path.chmod(0o777)

    assert f"other users can write {tmp_path}" == untrusted(tmp_path / "store")


@posix
def test_sticky_parent_is_trusted(tmp_path: Path):
    """In a directory like /tmp only the owner can exchange an entry."""
    (tmp_path / "store").mkdir(mode=0o700)
    tmp_path.chmod(0o1777)

    assert None is untrusted(tmp_path / "store")


@posix
def test_other_owner_is_untrusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A directory of another user is not trusted, whatever its mode."""
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)

    assert "it belongs to another user" == untrusted(tmp_path)


@posix
def test_missing_directory_is_untrusted(tmp_path: Path):
    """What cannot be looked at is not trusted."""
    expected = "it can't be looked at: No such file or directory"

    assert expected == untrusted(tmp_path / "none")


@posix
def test_unset_home_is_found_in_the_user_list():
    """A process without HOME, as of a service, keeps its store in its user's home."""
    code = (
        "import os, pwd; del os.environ['HOME']\n"
        "from tilewise.settings import Settings\n"
        "from tilewise.store.place import default_directory\n"
        "home = pwd.getpwuid(os.getuid()).pw_dir\n"
        "print(str(default_directory(Settings())).startswith(home))"
    )

    assert "True\n" == python(code, XDG_CACHE_HOME="", HOME="/x").stdout
