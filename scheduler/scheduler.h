// The scheduler's front page: from one iteration's profile to a plan that keeps a job within its
// budget.
//
// A pure library without CUDA, clock, file or thread, linked by the interposer, the agent, the
// command line and the tests. Values in, values out; integers; equal input gives equal bytes;
// errors are values.
//
//   learn/iteration_learner.h   a job's events to what repeats        learn/iteration_follower.h
//   where a job is in it trace/profile.h         what one iteration does trace/profile_file.h   its
//   file format, hostile input checked plan/problem.h          profile + device + budget
//   plan/plan.h            steps and actions plan/cost_model.h       what a plan costs
//   plan/lower_bound.h     what any plan must cost plan/plan_validator.h   whether a plan is right
//   plan/plan_explainer.h  why each action was taken plan/strategy.h         the interface of all
//   strategies   plan/strategies/       one file per paper plan/address/layout.h   where buffers
//   lie                 networks/              profiles of the papers' networks
#pragma once

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/problem.h"
#include "scheduler/plan/strategy.h"
#include "scheduler/trace/profile.h"
