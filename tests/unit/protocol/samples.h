// One message of each kind; every field has a value that no other field has.
#pragma once

#include <vector>

#include "protocol/message.h"

namespace spillway::protocol {

inline std::vector<Message> Samples() {
  return {
      Hello{1, 3, Role::kJob, 4711, "libspillway 0.1.0"},
      Welcome{1, 0x1122334455667788, 42, 500, "slurm-1201"},
      Register{2,
               {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
               150754820096,
               9663676416,
               8589934592,
               17179869184,
               1073741824,
               2147483648},
      Admission{2, AdmissionState::kQueued, 3, "12.0 GiB are guaranteed to others"},
      Grant{2, 7, 8589934592, 17179869184, 250, 2000, GrantReason::kRevoked},
      Obeyed{2, 7, 8589934592, 4294967296},
      Usage{2, true, Phase::kPlanned, 12884901888, 8589934592, 2097152, 4294967296, 1000001,
            1000002, 1000003, 1000004, 1000005, 1000006},
      Goodbye{-9},
      Error{ErrorCode::kVersion, 1, 1, "the agent speaks version 1"},
      Ask{Question::kJob, Form::kJson, 80, "pod-1f2e3d4c"},
      Document{1, 65536},
      SetBudget{"local-3", -1, true, 6442450944, 12884901888, kUnchanged, 500, 4, 11},
      Control{Action::kLogLevel, "debug"},
      Done{Outcome::kWouldBeDone, "local-3: 12.0 GiB on device 0"},
      AskSlabs{2, 268435456},
      Slabs{2, 67108864, 2097152, {2, {SlabName{0x0102030405060708}, SlabName{9}}}},
      ReturnSlabs{{1, {SlabName{9}}}},
      HeldSlabs{true, {3, {SlabName{7}, SlabName{8}, SlabName{9}}}},
      LinkPlace{2, 1, 17},
      Leaving{-9},
      AskPlan{2,
              5,
              {0x1112131415161718, 0x2122232425262728, 0x3132333435363738, 6442450944},
              3000,
              81920},
      PlanReply{2, 5, PlanOutcome::kFailed, 4096, 1000007, "the planner took more than 10000 ms"},
      RecallPlans{2, 0x1112131415161718},
      RecalledPlans{2, 0x1112131415161718, 2, {4096, 8192}},
      HostNeed{2, 12884901888},
      Account{2,
              2147483648,
              1000001,
              1000002,
              1000003,
              1000004,
              {1000005, 1000006, 1000007, 1000008, 1000009, 1000010, 1000011},
              1000012,
              1000013,
              1000014,
              {1000015, 1000016, 1000017, 1000018},
              1000019},
      StepTimes{2, 1000020, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}},
      DriverSlabs{2, 67108864, {2, {SlabName{0x8102030405060708}, SlabName{0x8000000000000009}}}},
      Footprint{2, 12884901888},
      ExpectJob{"slurm-1201", "3", 6442450944, 12884901888, kUnchanged, 4, 11},
      ForgetJob{"slurm-1201", "3"},
      JobTotals{"slurm-1201", 1000001, 1000002, 1000003, 1000004, 1000005, 1000006},
      WorkspaceGrant{2, 268435456},
      WorkspaceUse{2, 268435456, 1000001, 1000002},
      SetWorkspace{"local-3", true, 536870912},
      Turn{2, TurnState::kWaits, 6442450944, 4000, "another job's turn"},
      TurnUse{2, true, 1000001, 1000002, 1000003},
      PlanUse{2, 1000001, 1000002, 1000003, 1000004, 1000005, 1000006, 1000007, 1000008, 1000009,
              1000010, 1000011, 1000012, 1000013},
      LostTime{2, 1000001, 1000002, 1000003, 1000004},
  };
}

}  // namespace spillway::protocol
