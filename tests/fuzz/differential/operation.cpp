#include "tests/fuzz/differential/operation.h"

#include "tests/fuzz/differential/feature.h"

namespace spillway::fuzz {
namespace {

constexpr const char* kKinds[] = {
    "stream_create", "stream_destroy", "event_record", "event_wait", "event_sync", "stream_sync",
    "context_sync",  "alloc",          "free",         "kernel",     "copy",       "fill",
    "host_function", "host_fill",      "host_fold",    "inspect",    "mem_info",   "refusals",
    "pool_create",   "pool_trim",      "pool_destroy", "give",       "take",       "call",
    "work",          "free_barrier"};
constexpr const char* kAllocForms[] = {"mem_alloc", "pitch",  "async",      "pool",
                                       "feature",   "pinned", "registered", "pageable"};
constexpr const char* kObjectUses[] = {"", "makes", "reads", "writes", "ends"};
constexpr const char* kFreeForms[] = {"mem_free", "free_async", "host", "feature"};
constexpr const char* kLaunchForms[] = {"flat", "flat_extra", "struct", "struct_extra"};
constexpr const char* kCopyForms[] = {"typed", "unified", "2d", "2d_unaligned", "3d"};
constexpr const char* kFillForms[] = {"d8", "d16", "d32", "2d8", "2d16", "2d32"};

const char* FormName(const Operation& operation) {
  switch (operation.kind) {
    case Kind::kAlloc:
      return kAllocForms[operation.form];
    case Kind::kFree:
      return kFreeForms[operation.form];
    case Kind::kKernel:
      return kLaunchForms[operation.form];
    case Kind::kCopy:
      return kCopyForms[operation.form];
    case Kind::kFill:
      return kFillForms[operation.form];
    default:
      return nullptr;
  }
}

bool HasStream(const Operation& operation) {
  switch (operation.kind) {
    case Kind::kKernel:
    case Kind::kHostFunction:
    case Kind::kStreamCreate:
    case Kind::kStreamDestroy:
    case Kind::kStreamSync:
    case Kind::kEventRecord:
    case Kind::kEventWait:
    case Kind::kGive:
    case Kind::kFeatureWork:
      return true;
    case Kind::kAlloc:
      return operation.form == static_cast<int>(AllocForm::kAsync) ||
             operation.form == static_cast<int>(AllocForm::kPool);
    case Kind::kFree:
      return operation.form == static_cast<int>(FreeForm::kFreeAsync);
    default:
      return operation.on_stream;
  }
}

std::string StreamName(int stream) {
  if (stream == kLegacyStream) return "legacy";
  if (stream == kPerThreadStream) return "per_thread";
  return "s" + std::to_string(stream);
}

std::string ViewText(const View& view) {
  std::string text = "b" + std::to_string(view.buffer) + "[" + std::to_string(view.offset_bytes) +
                     "+" + std::to_string(view.bytes);
  if (view.stride_bytes != 0) text += " stride " + std::to_string(view.stride_bytes);
  if (view.pitch_bytes != 0) text += " pitch " + std::to_string(view.pitch_bytes);
  return text + "]";
}

std::string BoxText(const Box& box) {
  return " box " + std::to_string(box.row_bytes) + "x" + std::to_string(box.rows) + "x" +
         std::to_string(box.slices);
}

void Append(std::string& text, const char* name, int number) {
  if (number != kNone) text += " " + std::string(name) + std::to_string(number);
}

}  // namespace

std::string ToText(const Operation& operation) {
  std::string text = "#" + std::to_string(operation.origin) + " t" +
                     std::to_string(operation.thread) + " " +
                     kKinds[static_cast<int>(operation.kind)];
  if (operation.feature != kNone)
    text += std::string(" ") + AllFeatures()[operation.feature]->Name();
  if (const char* form = FormName(operation)) text += std::string(" ") + form;
  if (operation.slow) text += " slow";
  if (HasStream(operation)) text += " on " + StreamName(operation.stream);
  Append(text, "e", operation.event);
  Append(text, "b", operation.buffer);
  Append(text, "pool", operation.pool);
  Append(text, "decoy b", operation.decoy);
  Append(text, "to t", operation.to_thread);
  if (operation.object != kNone) {
    text += std::string(" ") + kObjectUses[static_cast<int>(operation.object_use)];
    Append(text, "o", operation.object);
  }
  if (operation.kind == Kind::kAlloc) text += " " + std::to_string(operation.bytes) + " bytes";
  operation.ForEachOut([&](const View& view) { text += " out " + ViewText(view); });
  for (const View& view : operation.in) text += " in " + ViewText(view);
  for (const View& view : operation.names) text += " names " + ViewText(view);
  if (operation.box.rows != 0) text += BoxText(operation.box);
  for (const Operation& part : operation.body) text += "\n    " + ToText(part);
  return text;
}

}  // namespace spillway::fuzz
