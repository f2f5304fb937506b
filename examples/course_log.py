"""A course platform's log, generated: who was shown which course, and what they watched of it since.

Every visitor is shown one of four courses, drawn evenly, and follows it week by week. A course has
eight lectures, one a week. Some visitors never start, and before every further lecture some leave
for good. Courses differ in how many start and in how many stay: the one that most
people start is not the one that is watched most in the end.

python examples/course_log.py FOLDER writes two tables: decisions.csv (id, course, shown_at) and
pieces.csv (id, lecture, time, minutes). The same bytes every time.
"""

import csv
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np

VISITS = 3000
DAYS = 300
LECTURES = 8
MINUTES = 30  # of a lecture
SEED = 20240901
START = datetime(2024, 1, 8)  # the log says nothing of time zones, as many do not


class Course(NamedTuple):
    """How a course is followed."""

    name: str
    start: float  # how many watch the first lecture
    stay: float  # how many of those who watched one lecture come back for the next


COURSES = (
    Course("drawing", 0.80, 0.55),
    Course("guitar", 0.62, 0.72),
    Course("python", 0.50, 0.86),
    Course("statistics", 0.42, 0.84),
)


def write(folder: Path, visits: int = VISITS, seed: int = SEED) -> None:
    """Write the two tables into `folder`, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    # Uniforms of a counter-based generator: no numpy release changes what they are. Of each visit's
    # rows, one for every lecture and the last for the visit itself.
    u = np.random.Generator(np.random.Philox(seed)).random((visits, LECTURES + 1, 3))
    at = np.sort(u[:, LECTURES, 0]) * DAYS
    with (
        open(folder / "decisions.csv", "w", newline="", encoding="utf-8") as shown,
        open(folder / "pieces.csv", "w", newline="", encoding="utf-8") as watched,
    ):
        decisions, pieces = (csv.writer(file, lineterminator="\n") for file in (shown, watched))
        decisions.writerow(["id", "course", "shown_at"])
        pieces.writerow(["id", "lecture", "time", "minutes"])
        for visit in range(visits):
            course = COURSES[int(u[visit, LECTURES, 1] * len(COURSES))]
            decisions.writerow([f"v{visit:05d}", course.name, _moment(at[visit])])
            for lecture, (there, when, how_much) in enumerate(u[visit, :LECTURES].tolist()):
                if there >= (course.stay if lecture else course.start):
                    break
                moment = at[visit] + 7 * lecture + 3 * when**2
                if moment < DAYS:  # what comes after the log was written is not in it
                    minutes = round(MINUTES * (0.4 + 0.6 * how_much), 1)
                    pieces.writerow([f"v{visit:05d}", lecture + 1, _moment(moment), minutes])


def _moment(day: float) -> str:
    return (START + timedelta(seconds=round(86400 * day))).isoformat(sep=" ")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
