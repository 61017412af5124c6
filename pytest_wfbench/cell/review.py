"""What a review's cell comes to: a workspace that nobody can write to, an artifact apart, and what it is worth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.cell.sessions import Fault, Stage
from pytest_wfbench.files import UnsafeFile, read_untrusted
from pytest_wfbench.matrix.load import LoadedTask
from pytest_wfbench.report.words import plural
from pytest_wfbench.sandbox.identity import choose_identity
from pytest_wfbench.sandbox.spec import Bind, Sandbox
from pytest_wfbench.scoring.artifact import ARTIFACT, ARTIFACT_LIMIT, Artifact, InvalidArtifact, read_artifact
from pytest_wfbench.scoring.labels import Label, read_labels
from pytest_wfbench.scoring.review import ReviewScores, score_review
from pytest_wfbench.workspace.overlay import Workspace

TARGET = "/review"
VARIABLE = "WFBENCH_REVIEW_OUTPUT"
INVALID, IMPERFECT = "review-artifact-invalid", "review-imperfect"


@dataclass(frozen=True)
class Review:
    """What was found of a review: what it says and what that is worth, both none where it is no whole one."""

    artifact: Artifact | None = None
    scores: ReviewScores | None = None
    fault: Fault | None = None


@dataclass(frozen=True)
class Desk:
    """Where one cell's review is written: ``place`` is an empty directory of the host, ``stage`` shows it."""

    place: Path
    stage: Stage
    labels: tuple[Label, ...]

    def score(self, whole: bool = True) -> Review:
        """Read what the sessions left and score it.

        Where they were not ``whole``, having ended at fault, what is no review says nothing more.
        """
        try:
            artifact = read_artifact(_bytes(self.place))
        except InvalidArtifact as error:
            return Review(fault=Fault("unusable", INVALID, str(error))) if whole else Review()
        scores = score_review(artifact, self.labels)
        fault = None if scores.perfect else Fault("miss", IMPERFECT, _told(scores))
        return Review(artifact, scores, fault)


def open_desk(loaded: LoadedTask, workspace: Workspace, sandbox: Sandbox) -> Desk:
    """Return the desk of a cell that is about to begin. Its directory is removed with the workspace.

    Without namespaces nothing is read-only: there the agent has a copy of its own.
    """
    if loaded.hidden.labels is None:
        raise ValueError(f"task {loaded.task.id} has no labels")
    place = workspace.directory / "review"
    place.mkdir(mode=0o700)
    choose_identity().own(place)
    apart = sandbox.name == "bwrap"
    target = TARGET if apart else str(place)
    ground = workspace.view_mounts() if apart else workspace.session_mounts()
    stage = Stage((*ground, Bind(place, target, writable=True)), {VARIABLE: target}, f"{target}/{ARTIFACT}")
    return Desk(place, stage, read_labels(loaded.hidden.labels.data).findings)


def _bytes(place: Path) -> bytes | None:
    """Return the artifact's bytes, none where it was never written. The agent has ended: nothing changes it any more.

    Raises:
        InvalidArtifact: for anything but a regular file of at most 256 KiB that can be read.
    """
    try:
        return read_untrusted(place, ARTIFACT, ARTIFACT_LIMIT)
    except FileNotFoundError:
        return None
    except UnsafeFile as error:
        raise InvalidArtifact(str(error)) from None
    except OSError as error:
        raise InvalidArtifact(f"{ARTIFACT} cannot be read: {error.strerror}") from None


def _told(scores: ReviewScores) -> str:
    labels = scores.true_positives + scores.false_negatives
    parts = (
        f"{scores.false_negatives} of {labels} labels missed" if scores.false_negatives else "",
        f"{plural(scores.false_positives, 'finding')} without a label" if scores.false_positives else "",
        "" if scores.verdict_correct else "the verdict is wrong",
    )
    return ", ".join(filter(None, parts))
