#include "simulator/dnn/graph/attributes.h"

#include <algorithm>
#include <array>

namespace spillway::simulator::dnn::graph {
namespace {

constexpr std::uint32_t Bit(cudnnBackendAttributeType_t type) { return 1u << type; }
constexpr std::uint32_t kTensor = Bit(CUDNN_TYPE_BACKEND_DESCRIPTOR);
constexpr std::uint32_t kNumber =
    Bit(CUDNN_TYPE_FLOAT) | Bit(CUDNN_TYPE_DOUBLE) | Bit(CUDNN_TYPE_INT32);
constexpr std::uint32_t kFractions = Bit(CUDNN_TYPE_INT64) | Bit(CUDNN_TYPE_FRACTION);

// A row without a name begins the list of a kind.
struct Row {
  const char* kind_name;
  int kind;
  int name;
  std::uint32_t types;
  bool is_list;
  Role role;
  int part;
};

#define KIND(kind) \
  {#kind, CUDNN_BACKEND_##kind##_DESCRIPTOR, -1, 0, false, Role::kSetting, kNoPart},
#define ATTRIBUTE(name, types, is_list, role, part) \
  {nullptr, -1, CUDNN_ATTR_##name, types, is_list, role, part},
#define TENSORS(name, types, is_list, role) \
  ATTRIBUTE(name, types, is_list, role, CUDNN_BACKEND_TENSOR_DESCRIPTOR)
#define SETS(name, type) ATTRIBUTE(name, Bit(CUDNN_TYPE_##type), false, Role::kSetting, kNoPart)
#define LIST(name, type) ATTRIBUTE(name, Bit(CUDNN_TYPE_##type), true, Role::kSetting, kNoPart)
#define NUMBER(name) ATTRIBUTE(name, kNumber, false, Role::kSetting, kNoPart)
#define FRACTIONS(name) ATTRIBUTE(name, kFractions, true, Role::kSetting, kNoPart)
#define PART(name, kind) \
  ATTRIBUTE(name, kTensor, false, Role::kSetting, CUDNN_BACKEND_##kind##_DESCRIPTOR)
#define PARTS(name, kind) \
  ATTRIBUTE(name, kTensor, true, Role::kSetting, CUDNN_BACKEND_##kind##_DESCRIPTOR)
#define OPERATIONS(name) ATTRIBUTE(name, kTensor, true, Role::kSetting, kAnyOperation)
#define READS(name) TENSORS(name, kTensor, false, Role::kReads)
#define READS_MANY(name) TENSORS(name, kTensor, true, Role::kReads)
#define WRITES(name) TENSORS(name, kTensor, false, Role::kWrites)
#define UPDATES(name) TENSORS(name, kTensor, false, Role::kUpdates)
#define UPDATES_MANY(name) TENSORS(name, kTensor, true, Role::kUpdates)
#define READS_OR_WRITES(name) TENSORS(name, kTensor, false, Role::kReadsOrWrites)
#define READS_OR_SETS(name) TENSORS(name, kTensor | Bit(CUDNN_TYPE_INT64), false, Role::kReads)
#define ANSWERS(name, type) ATTRIBUTE(name, Bit(CUDNN_TYPE_##type), true, Role::kAnswer, kNoPart)

constexpr Row kRows[] = {
#include "simulator/dnn/graph/attributes.inc"
};

constexpr std::size_t kAttributes =
    std::count_if(std::begin(kRows), std::end(kRows), [](const Row& row) { return row.name >= 0; });

constexpr auto kTable = [] {
  std::array<Attribute, kAttributes> table{};
  auto kind = CUDNN_BACKEND_POINTWISE_DESCRIPTOR;
  std::size_t next = 0;
  for (const Row& row : kRows) {
    if (row.name < 0) {
      kind = static_cast<cudnnBackendDescriptorType_t>(row.kind);
    } else {
      table[next++] = {kind,      static_cast<cudnnBackendAttributeName_t>(row.name),
                       row.types, row.is_list,
                       row.role,  row.part};
    }
  }
  return table;
}();

}  // namespace

std::span<const Attribute> AttributesOf(cudnnBackendDescriptorType_t kind) {
  const auto is_of_kind = [kind](const Attribute& attribute) { return attribute.kind == kind; };
  const auto begin = std::find_if(kTable.begin(), kTable.end(), is_of_kind);
  return {begin, std::find_if_not(begin, kTable.end(), is_of_kind)};
}

const Attribute* FindAttribute(cudnnBackendDescriptorType_t kind,
                               cudnnBackendAttributeName_t name) {
  for (const Attribute& attribute : AttributesOf(kind)) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

bool IsOperation(cudnnBackendDescriptorType_t kind) {
  return KindName(kind).starts_with("OPERATION_");
}

std::string_view KindName(cudnnBackendDescriptorType_t kind) {
  for (const Row& row : kRows) {
    if (row.name < 0 && row.kind == kind) return row.kind_name;
  }
  return "";
}

std::size_t TypeBytes(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_FRACTION:
      return sizeof(cudnnFraction_t);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    default:
      return 4;  // enumerations, int32 and float
  }
}

}  // namespace spillway::simulator::dnn::graph
