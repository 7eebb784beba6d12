"""Lists and reads the source files under version control, for the checks."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tracked_files(*suffixes):
    """Paths, relative to the root, of tracked and untracked files that git does not ignore, with one of `suffixes`."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [pathlib.PurePosixPath(name) for name in listing.split("\0") if name]
    return sorted(path for path in paths if path.suffix in suffixes and (ROOT / path).is_file())


def read_lines(path):
    return (ROOT / path).read_text(encoding="utf-8").splitlines()
