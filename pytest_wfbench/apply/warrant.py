"""Whether a results directory warrants its candidate: complete, unexpired, bound to these files, and decided anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pytest_wfbench.apply.errors import Refused
from pytest_wfbench.apply.journal import Change
from pytest_wfbench.digests import digest_bytes
from pytest_wfbench.evidence.candidate import CANDIDATE
from pytest_wfbench.evidence.manifest import Candidate, Sweep
from pytest_wfbench.evidence.store import Rows, read_rows, read_sweep
from pytest_wfbench.matrix.arms import SKILL_ROOT
from pytest_wfbench.matrix.bindings import overlay_digest
from pytest_wfbench.matrix.overlay import read_overlay
from pytest_wfbench.matrix.problems import printable
from pytest_wfbench.promotion.bound import unbound
from pytest_wfbench.promotion.difference import differences
from pytest_wfbench.promotion.explain import OLD, OldPromotion, read_promotion
from pytest_wfbench.promotion.gate import decide
from pytest_wfbench.promotion.model import Promotion

PROMOTION = "promotion.json"
SHOWN = 12


@dataclass(frozen=True)
class Warrant:
    """What is to be written where: a change for every file and each of its mirrors, and the new bytes by path."""

    changes: tuple[Change, ...]
    data: dict[str, bytes]


def warrant(directory: Path, now: datetime) -> Warrant:
    """Return what a results directory warrants.

    Raises:
        Refused: with every reason against it, a line each.
        EvidenceError, BadPromotion: when the directory, or its promotion.json, cannot be read.
    """
    sweep, rows = read_sweep(directory), read_rows(directory)
    if sweep.candidate is None:
        raise Refused(f"{directory} is of a sweep without a candidate overlay: there is nothing to apply")
    written = read_promotion(directory / PROMOTION)
    if isinstance(written, OldPromotion):
        raise Refused(OLD)
    found = decide(rows, sweep)
    if against := (*_edited(written, found), *_undecided(found), *_unfit(rows, sweep, found, now)):
        shown = against[:SHOWN]
        more = (f"… and {len(against) - len(shown)} more.",) if len(against) > len(shown) else ()
        raise Refused("\n".join((*shown, *more)))
    files = _files(directory, sweep.candidate)
    return _changes(sweep.candidate, files)


def _edited(written: Promotion, found: Promotion) -> Iterator[str]:
    """The file says what the rows say."""
    told = list(differences(json.loads(written.to_json()), json.loads(found.to_json())))
    if told:
        yield f"{PROMOTION} is not what follows from the rows. Make it again with `wfbench gate`:"
        yield from told


def _undecided(found: Promotion) -> Iterator[str]:
    """Every required arm is promoted, and no other one was decided upon."""
    for decision in found.decisions:
        if decision.decision != "promote":
            reason = decision.reasons[0] if decision.reasons else ""
            yield f"{decision.candidate_arm} is not promoted ({decision.decision}): {reason}"
    decided = {decision.candidate_arm for decision in found.decisions}
    for arm in found.required_candidate_arms:
        if arm not in decided:
            yield f"The overlay needs {arm}, on which nothing was decided."
    if not found.required_candidate_arms:
        yield "The sweep names 0 candidate arms that the overlay needs."


def _unfit(rows: Rows, sweep: Sweep, found: Promotion, now: datetime) -> Iterator[str]:
    if _expired(found.evidence_expires_at, now):
        yield f"The evidence expired at {found.evidence_expires_at}: run the sweep again."
    if outside := sum(row.sandbox != "bwrap" for row in rows.rows):
        yield f"{outside} of {len(rows.rows)} rows were made outside the bwrap sandbox."
    yield from unbound(rows, sweep)


def _expired(moment: str | None, now: datetime) -> bool:
    try:
        return moment is None or datetime.fromisoformat(moment) <= now
    except (ValueError, TypeError):
        return True


def _files(directory: Path, candidate: Candidate) -> dict[str, bytes]:
    """Return the candidate's files, held to all that an overlay is held to before a sweep, and to its digests."""
    captured, problems = read_overlay(directory / CANDIDATE)
    if problems:
        told = "; ".join(f"{problem.key}: {problem.message}".lstrip(": ") for problem in problems[:SHOWN])
        raise Refused(printable(f"{directory / CANDIDATE}: {told}. Restore it from where the sweep was archived"))
    files = {entry.name: entry.data for entry in captured}
    if (found := overlay_digest(files)) != candidate.overlay_digest:
        raise Refused(
            f"{directory / CANDIDATE} has the digest {found}, the evidence is bound to {candidate.overlay_digest}"
        )
    return files


def _changes(candidate: Candidate, files: dict[str, bytes]) -> Warrant:
    changes: dict[str, Change] = {}
    data: dict[str, bytes] = {}
    for name, content in sorted(files.items()):
        base, new = candidate.target_base_digests.get(f"{SKILL_ROOT}/{name}"), digest_bytes(content)
        for root in (SKILL_ROOT, *candidate.mirrors):
            if base != new:
                path = f"{root}/{name}"
                changes[path], data[path] = Change(path=path, base=base, new=new), content
    return Warrant(tuple(changes.values()), data)
