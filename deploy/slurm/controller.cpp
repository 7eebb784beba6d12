#include "deploy/slurm/controller.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include <cstdlib>
#include <string>

#include "deploy/slurm/slurm_names.h"

namespace spillway::slurm {
namespace {

// -1: the node is not in the list.
int PlaceInNodes(const char* nodes, const char* node) {
  if (nodes == nullptr || node == nullptr) return -1;
  hostlist_t list = slurm_hostlist_create(nodes);
  const int place = slurm_hostlist_find(list, node);
  slurm_hostlist_destroy(list);
  return place;
}

int64_t ShardsOf(const slurm_job_info_t& job) {
  const int place = PlaceInNodes(job.nodes, std::getenv("SLURMD_NODENAME"));
  if (place < 0 || static_cast<uint32_t>(place) >= job.gres_detail_cnt) return 0;
  const char* const resources = job.gres_detail_str[place];
  return resources == nullptr ? 0 : ShardsIn(resources);
}

}  // namespace

base::Result<int64_t> ShardsOnThisNode(uint32_t job) {
  job_info_msg_t* answer = nullptr;
  if (slurm_load_job(&answer, job, SHOW_DETAIL) != SLURM_SUCCESS)
    return base::Error{"slurmctld does not tell the job's shards", slurm_strerror(errno)};
  const int64_t shards = answer->record_count == 0 ? 0 : ShardsOf(answer->job_array[0]);
  slurm_free_job_info_msg(answer);
  return shards;
}

}  // namespace spillway::slurm
