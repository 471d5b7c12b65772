"""A caller's regions are found again by whoever looks, in order and with reasons."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.store.samples import python, told
from tilewise.api.decision_store import DecisionStore, Match
from tilewise.errors import ArgumentError, SettingError
from tilewise.store.stack import Store, open_store

REGIONS: list[dict[str, Any]] = [
    {"n_max": 1000, "m_max": 64, "variant": "shared", "block": 256},
    {"n_max": 1000, "variant": "global"},
    {"n_max": None, "variant": "numpy"},
]


@pytest.fixture
def store() -> DecisionStore:
    """Open the user's default store."""
    return DecisionStore.load_or_create()


def update(store: DecisionStore, name: str = "hist", **changes: Any) -> bool:
    """Store the regions above under a name."""
    return store.update(name, **{"axes": ("n", "m"), "regions": REGIONS, **changes})


def fresh() -> DecisionStore:
    """Open the store as another process would, without what this one remembers."""
    here = DecisionStore.load_or_create()
    return DecisionStore(Store(open_store().settings), here.fingerprint)


def test_empty_store_finds_nothing(store: DecisionStore):
    """What nobody measured is None."""
    assert (None, False, [], False) == (
        store.lookup("hist", n=1, m=1),
        store.has("hist"),
        store.get_regions("hist"),
        store.evict("hist"),
    )


@pytest.mark.parametrize(
    ("n", "m", "expected"),
    [
        (1000, 64, {"variant": "shared", "block": 256}),
        (1000, 65, {"variant": "global"}),
        (1001, 1, {"variant": "numpy"}),
    ],
)
def test_first_match_wins(store: DecisionStore, n: int, m: int, expected: object):
    """Bounds are included, order resolves overlap, bounds are not in the payload."""
    update(store)

    assert expected == store.lookup("hist", n=n, m=m)


def test_update_says_that_it_is_kept(store: DecisionStore):
    """A table that went to disk is True."""
    assert (True, True) == (update(store), store.has("hist"))


def test_regions_come_back_as_written(store: DecisionStore):
    """Bounds of None are there too."""
    update(store)

    assert REGIONS == store.get_regions("hist")


def test_another_process_finds_them(store: DecisionStore):
    """What was kept is on disk, for this hardware."""
    update(store)
    code = (
        "from tilewise.api.decision_store import DecisionStore\n"
        "print(DecisionStore.load_or_create().lookup('hist', n=5, m=5))"
    )
    place = str(store.store.directory)
    done = python(code, TILEWISE_CACHE_DIR=place)

    assert "{'variant': 'shared', 'block': 256}\n" == done.stdout


def test_several_names_stay_apart(store: DecisionStore):
    """A second name does not touch the first."""
    update(store)
    update(store, "other", regions=[{"variant": "only"}])

    assert ["shared", "only"] == [
        (store.lookup(name, n=1, m=1) or {})["variant"] for name in ("hist", "other")
    ]


def test_update_replaces_a_table(store: DecisionStore):
    """Regions of an earlier update do not stay behind."""
    update(store)
    update(store, regions=[{"variant": "new"}])

    assert [{"variant": "new"}] == store.get_regions("hist")


def test_peer_is_seen_without_reopening(store: DecisionStore):
    """A process that lives long sees what another one tuned since."""
    update(store)
    before = store.lookup("hist", n=1, m=1)
    peer = fresh()
    update(peer, regions=[{"variant": "peer"}])
    peer.store.close()

    assert ("shared", {"variant": "peer"}) == (
        (before or {})["variant"],
        store.lookup("hist", n=1, m=1),
    )


def test_evicted_name_is_gone_for_all(store: DecisionStore):
    """Evicting removes it from disk and from what this process remembers."""
    update(store)
    update(store, code_version="v1")

    assert (True, False, None) == (
        store.evict("hist"),
        store.has("hist"),
        store.lookup("hist", n=1, m=1),
    )


def test_other_hardware_is_a_miss_that_says_so(store: DecisionStore):
    """Regions measured elsewhere are not used here."""
    update(DecisionStore(store.store, "cpu_other_no-gpu"))
    reason = f"'hist' has no regions for {store.fingerprint}"

    assert Match(False, None, None, None, reason) == store.lookup_explain(
        "hist", n=1, m=1
    )


def test_lookup_explains_a_match(store: DecisionStore):
    """The region's number, the region and the reason are there."""
    update(store)
    reason = "region 1 is the first that takes n=5, m=100"
    expected = Match(True, 1, REGIONS[1], {"variant": "global"}, reason)
    found = store.lookup_explain("hist", n=5, m=100)

    assert (expected, reason) == (found, str(found))


def test_lookup_explains_a_gap_between_whole_bounds(store: DecisionStore):
    """10.5 lies in no region when one ends at 10 and the next begins at 11."""
    regions = [{"n_max": 10, "v": 1}, {"n_min": 11, "v": 2}]
    update(store, axes="n", regions=regions)

    assert "n=10.5 lies between the whole bounds of the regions" == str(
        store.lookup_explain("hist", n=10.5)
    )


def test_words_choose_a_region(store: DecisionStore):
    """An axis may be where the arguments live."""
    regions = [{"at_eq": "device", "v": 1}, {"at_eq": "host", "v": 2}, {"v": 3}]
    update(store, axes=["at"], regions=regions)

    assert [1, 2, 3] == [
        (store.lookup("hist", at=place) or {})["v"]
        for place in ("device", "host", "elsewhere")
    ]


@pytest.mark.parametrize(
    "axes", [{"n": 1}, {"n": 1, "m": 1, "k": 1}, {"n": float("nan"), "m": 1}]
)
def test_bad_lookup_is_an_error(store: DecisionStore, axes: dict[str, float]):
    """A missing, unknown or NaN axis matches no region by silence."""
    update(store)

    with pytest.raises(ArgumentError):
        store.lookup("hist", **axes)


def test_bad_update_changes_nothing(store: DecisionStore):
    """A refused table leaves the earlier one."""
    update(store)
    with pytest.raises(ArgumentError, match="region 1 is covered completely"):
        update(store, regions=[{}, {"n_max": 5}])

    assert REGIONS == store.get_regions("hist")


def test_empty_name_is_refused(store: DecisionStore):
    """A table has a name."""
    with pytest.raises(ArgumentError, match="a table needs a name"):
        update(store, "")


def test_code_version_is_asked_for(store: DecisionStore):
    """What was measured with other code is a miss that names the version."""
    update(store, code_version="v1")
    reason = "'hist' was measured with code version 'v1'"

    assert (True, False, reason) == (
        store.has("hist", code_version="v1"),
        store.has("hist", code_version="v2"),
        str(store.lookup_explain("hist", code_version="v2", n=1, m=1)),
    )


def test_update_without_version_does_not_hide_others(store: DecisionStore):
    """Staleness can't be switched off by a writer that states no version."""
    update(store, code_version="v1")
    update(store, regions=[{"variant": "unversioned"}])

    assert (REGIONS, False) == (
        store.get_regions("hist", code_version="v1"),
        store.has("hist", code_version="v2"),
    )


def test_latest_version_serves_who_asks_for_none(store: DecisionStore):
    """Without a version the latest table counts."""
    update(store, code_version="v1")
    update(store, code_version="v2", regions=[{"variant": "v2"}])

    assert {"variant": "v2"} == store.lookup("hist", n=1, m=1)


def test_same_place_is_the_same_object():
    """A process has one object for a store and a hardware."""
    assert DecisionStore.load_or_create() is DecisionStore.load_or_create()


def test_tuning_off_never_writes(store: DecisionStore, monkeypatch: pytest.MonkeyPatch):
    """A run with tuning off cannot overwrite what was tuned."""
    monkeypatch.setenv("TILEWISE_TUNE", "off")

    with pytest.raises(SettingError, match="TILEWISE_TUNE=off forbids"):
        update(store)


def test_readonly_store_keeps_in_memory(
    store: DecisionStore, monkeypatch: pytest.MonkeyPatch
):
    """Where nothing may be written an update holds for this process alone."""
    monkeypatch.setenv("TILEWISE_READONLY", "1")
    readonly = DecisionStore.load_or_create()

    assert (False, REGIONS) == (update(readonly), readonly.get_regions("hist"))
    assert False is store.has("hist")


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs an impossible place")
def test_impossible_place_is_one_warning(monkeypatch: pytest.MonkeyPatch):
    """A store that can't be made never makes a call fail."""
    monkeypatch.setenv("TILEWISE_CACHE_DIR", "/dev/null/caller")
    store = DecisionStore.load_or_create()
    with told() as said:
        kept = (update(store), update(store, "other"), store.has("hist"))

    assert ((False, False, True), 1) == (kept, len(said))


def test_kept_update_ends_the_memory(store: DecisionStore):
    """Once it is on disk, another process's update is seen again."""
    update(store)
    (table,) = store.tables("hist")
    store.unkept["hist", ""] = table
    update(store)

    assert {} == store.unkept


def test_bundle_serves_below(
    store: DecisionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Regions that a package ships are used where nothing was measured."""
    update(store)
    store.store.export(tmp_path / "made.bundle")
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path / "new"))
    monkeypatch.setenv("TILEWISE_BUNDLE", str(tmp_path / "made.bundle"))
    other = DecisionStore.load_or_create()
    shipped = other.get_regions("hist")
    update(other, regions=[{"variant": "own"}])

    assert (REGIONS, [{"variant": "own"}]) == (shipped, other.get_regions("hist"))


def test_import_brings_regions(store: DecisionStore, tmp_path: Path):
    """Export and import carry the regions of callers too."""
    update(store)
    store.store.export(tmp_path / "made.bundle")
    store.store.clear()
    store.store.absorb(tmp_path / "made.bundle")

    assert REGIONS == store.get_regions("hist")


def test_threads_update_at_once(store: DecisionStore):
    """Eight threads with a name each lose nothing."""
    threads = [
        threading.Thread(target=update, args=(store, f"{number}"))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [True] * 8 == [store.has(f"{number}") for number in range(8)]


UPDATES = """
import os
from tilewise.api.decision_store import DecisionStore
for number in range(4):
    if not os.fork():
        store = DecisionStore.load_or_create()
        for step in range(8):
            regions = [{"step": step}]
            store.update(f"own {number}", axes="n", regions=regions)
            store.update("shared", axes="n", regions=regions)
        database = store.store.records.database
        database.worker.do(database.close_here, None)
        os._exit(0)
print({os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(4)})
"""


def test_processes_never_revert_each_other(store: DecisionStore):
    """Four processes that update own and shared names leave the last of each."""
    done = python(
        "import warnings; warnings.simplefilter('ignore')\n" + UPDATES,
        TILEWISE_CACHE_DIR=str(store.store.directory),
    )
    names = [*(f"own {number}" for number in range(4)), "shared"]

    assert ("{0}\n", "") == (done.stdout, done.stderr)
    assert [{"step": 7}] * 5 == [store.lookup(name, n=1) for name in names]
