// The scheduler's entry point: from one iteration's profile to a plan that fits a job's budget.
//
// A pure library without CUDA, clock, file or thread, linked by the interposer, the agent, the
// command line and the tests. Integers only; equal input gives equal bytes; errors are values.
//
//   learn/iteration_learner.h   finds iterations in a job's events
//   learn/iteration_follower.h  tracks the job's position in an iteration
//   trace/profile.h             one iteration; trace/file/trace_file.h is its file format
//   plan/problem.h              profile, device and budget
//   plan/plan.h                 steps and actions
//   plan/cost_model.h           the price of a plan
//   plan/lower_bound.h          the least price of any plan
//   plan/plan_validator.h       whether a plan is correct
//   plan/plan_explainer.h       why a plan takes each action
//   plan/strategy.h             the interface of plan/strategies/, one file per paper
//   plan/address/layout.h       buffer addresses
//   networks/                   profiles of the papers' networks
#pragma once

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/problem.h"
#include "scheduler/plan/strategy.h"
#include "scheduler/trace/profile.h"
