// How a case's child process reports to the runner: lines on one inherited file descriptor.
#pragma once

namespace spillway::contract {

inline constexpr int kReportFd =
    200;  // far above the descriptors that the C library and the driver open first

inline constexpr char kFailureRecord = 'F';
inline constexpr char kObservationRecord = 'O';
inline constexpr char kFigureRecord = 'N';     // name, value, unit, separated by tabs
inline constexpr char kSimulatedRecord = 'V';  // the case ran on the simulated driver
inline constexpr char kSkipRecord = 'S';

}  // namespace spillway::contract
