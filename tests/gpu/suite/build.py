"""Builds the suite's programs: nvcc, cmake and libc are enough; cuDNN and cuBLAS come from the
toolkit or PyTorch's wheels."""
import glob
import os
import shutil
import sysconfig

from .session import ROOT

PROGRAMS = {
    "spillway_preload": "lib/libspillway.so",
    "spillway": "bin/spillway",
    "contract_suite": "tests-bin/contract_suite",
    "probe": "tests-bin/probe",
    "fingerprint_cost": "tests-bin/fingerprint_cost",
    "runtime_program_shared": "tests-bin/runtime_program_shared",
    "runtime_program_static": "tests-bin/runtime_program_static",
    "digits_cnn": "workloads/digits_cnn",
    "workload_digits": "workloads/data/digits.csv",
}


def toolkit():
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    return os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))


def _toolkit_folders(kind):
    root = toolkit()
    names = {"include": ["include", "targets/x86_64-linux/include"],
             "lib": ["lib64", "lib", "targets/x86_64-linux/lib"]}[kind]
    return [os.path.join(root, name) for name in names]


def _wheel_folders(kind):
    """PyTorch's wheels carry the libraries as nvidia/<package>/{include,lib} or nvidia/cu13/{include,lib}."""
    folders = []
    for site in {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]}:
        folders += sorted(glob.glob(os.path.join(site, "nvidia", "*", kind)))
    return folders


def _find(names, kind):
    for folder in _toolkit_folders(kind) + _wheel_folders(kind):
        for name in names:
            if os.path.exists(os.path.join(folder, name)):
                return os.path.join(folder, name)
    return None


def _link(target, folder, name):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    if os.path.lexists(path):
        os.unlink(path)
    os.symlink(target, path)


def overlay(session):
    """One folder of headers and one of libraries, from wherever they are, with the link names
    that wheels lack.

    Returns the CMake settings that link the workloads with them.
"""
    include, lib = session.path("cuda-overlay", "include"), session.path("cuda-overlay", "lib")
    compiler = _find(["libnvrtc.so.13"], "lib")  # cuDNN compiles some kernels when it runs
    for path in glob.glob(os.path.join(os.path.dirname(compiler), "libnvrtc*.so*")) if compiler else []:
        _link(path, lib, os.path.basename(path))
    settings = []
    for library, soname, header in (("cudnn", "libcudnn.so.9", "cudnn.h"), ("cublas", "libcublas.so.13", "cublas_v2.h"),
                                    ("cudart", "libcudart.so.13", "cuda_runtime.h")):
        shared = _find([soname, f"lib{library}.so"], "lib")
        found_header = _find([header], "include")
        if not shared or not found_header:
            session.say(f"not found: {soname} and {header}: what needs {library} cannot be built")
            continue
        for path in glob.glob(os.path.join(os.path.dirname(shared), f"lib{library}*.so*")):
            _link(path, lib, os.path.basename(path))
        if not os.path.exists(os.path.join(lib, f"lib{library}.so")):
            _link(shared, lib, f"lib{library}.so")
        if not os.path.exists(os.path.join(_toolkit_folders("include")[0], header)):
            for path in glob.glob(os.path.join(os.path.dirname(found_header), f"{library}*.h")):
                _link(path, include, os.path.basename(path))
        settings.append(f"-DSPILLWAY_TOOLKIT_{library}={os.path.join(lib, f'lib{library}.so')}")
    session.environment["CPATH"] = os.pathsep.join(filter(None, [include, os.environ.get("CPATH")]))
    session.environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [lib, os.environ.get("LD_LIBRARY_PATH")]))
    return settings


def everything(session):
    """A step of its own: names what cannot be built, and provides the rest for the later steps."""
    session.run_step("build", _build)


def _build(session):
    if not os.path.exists(os.path.join(toolkit(), "bin", "nvcc")):
        return {"verdict": "skipped" if session.dry else "failed", "summary": "nvcc was not found"}
    patience = 6 if session.dry else 1  # a dry run may share a small machine with others
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    settings = overlay(session)
    jobs = str(os.cpu_count() or 1)
    configured = session.call(["cmake", "-S", ROOT, "-B", session.build, *generator, "-DSPILLWAY_SIMULATOR=OFF",
                               "-DSPILLWAY_TESTS=OFF", "-DSPILLWAY_GPU_SUITE=ON",
                               "-DSPILLWAY_WARNINGS_ARE_ERRORS=OFF",
                               f"-DCUDA_TOOLKIT_ROOT={toolkit()}", *settings], 120 * patience)
    if configured.code != 0:
        return {"verdict": "failed", "summary": "configure: " + configured.why()}
    # Builds everything at once to use all processors; then each target alone, for its own verdict
    # and message.
    keep_going = ["--", "-k", "0"] if generator else ["--", "-k"]
    building = ["cmake", "--build", session.build, "-j", jobs, "--target"]
    session.call([*building, *PROGRAMS, *keep_going], 240 * patience)
    missing = {}
    for target, product in PROGRAMS.items():
        output = session.call([*building, target], 60 * patience)
        if output.code != 0 or not os.path.exists(session.path(product)):
            missing[target] = output.why()
    if missing:
        return {"verdict": "failed", "summary": "not built: " + ", ".join(missing), "missing": missing}
    return {"verdict": "passed", "summary": f"{len(PROGRAMS)} products"}
