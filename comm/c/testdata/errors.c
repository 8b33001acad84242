/* Wrong calls, a fork, and the death of a rank. */
#include "check.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	float one = 1;
	gorun_comm none;
	gorun_error e;
	gorun_work work;
	wants_error(gorun_barrier(1), GORUN_ERR_ARGUMENT, "is no group"); /* before gorun_init */
	wants_error(gorun_init(NULL, NULL), GORUN_ERR_ARGUMENT, "world is NULL");
	wants_error(gorun_init(&(gorun_options){.init_method = "what"}, &none), GORUN_ERR_ARGUMENT, "what");
	wants_error(gorun_init(&(gorun_options){.rank = 1}, &none), GORUN_ERR_ARGUMENT, "no size");
	wants_error(gorun_init(&(gorun_options){.size = -1}, &none), GORUN_ERR_ARGUMENT, "WORLD_SIZE=-1");
	want(none == 0);
	fflush(stdout);
	int status;
	pid_t child = fork(); /* Go's runtime is there already */
	if (child == 0) {
		wants_error(gorun_init(NULL, &none), GORUN_ERR_FORKED, "forked");
		_exit(0);
	}
	want(waitpid(child, &status, 0) == child && status == 0);
	begin();
	wants_error(gorun_all_reduce(world, &one, &one, 1, 99, GORUN_SUM), GORUN_ERR_ARGUMENT, "AllReduce: there is no type 99");
	wants_error(gorun_all_reduce(world, &one, &one, 1, GORUN_FLOAT32, 77), GORUN_ERR_ARGUMENT, "no reduction 77");
	wants_error(gorun_all_reduce(world, &one, &one, 1, GORUN_FLOAT32, GORUN_BAND), GORUN_ERR_ARGUMENT, "no meaning for float32");
	wants_error(gorun_all_reduce(world, NULL, &one, 1, GORUN_FLOAT32, GORUN_SUM), GORUN_ERR_ARGUMENT, "AllReduce");
	wants_error(gorun_broadcast(world, &one, 1, GORUN_FLOAT32, size), GORUN_ERR_ARGUMENT, "Broadcast");
	wants_error(gorun_send(world, &one, 1, GORUN_FLOAT32, size, 0), GORUN_ERR_ARGUMENT, "Send");
	wants_error(gorun_ibarrier(world, NULL), GORUN_ERR_ARGUMENT, "work is NULL");
	wants_error(gorun_iall_reduce(world, &one, &one, 1, 99, GORUN_SUM, &work), GORUN_ERR_ARGUMENT, "no type 99");
	want(work == 0);
	wants_error(gorun_all_reduce(world, (void *)8, &one, 1, GORUN_FLOAT32, GORUN_SUM), GORUN_ERR_ARGUMENT, "AllReduce");
	must(gorun_iall_reduce(world, &one, (void *)"const", 1, GORUN_FLOAT32, GORUN_SUM, &work));
	wants_error(gorun_wait(work, NULL), GORUN_ERR_ARGUMENT, "AllReduce");
	wants_error(gorun_all_gatherv(world, &one, 1, (void *)8, GORUN_FLOAT32), GORUN_ERR_ARGUMENT, "AllGatherV: a list");
	wants_error(gorun_all_to_allv(world, &one, (void *)8, &one, (void *)8, GORUN_FLOAT32), GORUN_ERR_ARGUMENT, "AllToAllV: a list");
	for (size_t i = 0, most[] = {SIZE_MAX, INT64_MAX, (size_t)1 << 63, (size_t)1 << 61, (size_t)1 << 62}; i < sizeof most / sizeof *most; i++) {
		size_t n = most[i], counts[8] = {n, n, n};
		gorun_buffer list[8] = {{&one, n}, {&one, n}, {&one, n}};
		wants_error(gorun_all_reduce(world, &one, &one, n, GORUN_FLOAT64, GORUN_SUM), GORUN_ERR_ARGUMENT, "AllReduce: ");
		wants_error(gorun_all_gather(world, &one, &one, n, GORUN_INT8), GORUN_ERR_ARGUMENT, "AllGather: ");
		wants_error(gorun_all_to_all(world, &one, &one, n, GORUN_FLOAT64), GORUN_ERR_ARGUMENT, "AllToAll: ");
		wants_error(gorun_send(world, &one, n, GORUN_FLOAT64, 0, 0), GORUN_ERR_ARGUMENT, "Send: ");
		wants_error(gorun_all_gatherv(world, &one, 1, list, GORUN_FLOAT64), GORUN_ERR_ARGUMENT, "AllGatherV: ");
		wants_error(gorun_all_to_allv(world, &one, counts, &one, counts, GORUN_FLOAT64), GORUN_ERR_ARGUMENT, "AllToAllV: ");
		wants_error(gorun_alloc(world, n, &(void *){NULL}), n >> 63 ? GORUN_ERR_ARGUMENT : GORUN_ERR_OTHER, "Alloc");
	}
	wants_error(gorun_broadcast(world, (void *)-1, 1, GORUN_FLOAT64, 0), GORUN_ERR_ARGUMENT, "Broadcast: ");
	wants_error(gorun_all_reduce_coalesced(world, &(gorun_buffer){&one, 1}, -1, GORUN_FLOAT32, GORUN_SUM), GORUN_ERR_ARGUMENT, "-1 buffers");
	wants_error(gorun_all_reduce_coalesced(world, &(gorun_buffer){&one, 1}, 0, GORUN_FLOAT32, GORUN_SUM), GORUN_ERR_ARGUMENT, "no buffers");
	fflush(stdout);
	child = fork();
	if (child == 0) {
		wants_error(gorun_barrier(world), GORUN_ERR_FORKED, "forked");
		wants_error(gorun_init(NULL, &none), GORUN_ERR_FORKED, "forked");
		_exit(0);
	}
	want(waitpid(child, &status, 0) == child && status == 0);
	must(gorun_all_reduce(world, &one, &one, 1, GORUN_FLOAT32, GORUN_SUM)); /* parents go on */
	signal(SIGTERM, SIG_IGN); /* gorun stops the others when one has failed */
	must(gorun_barrier(world));
	if (rank == 1)
		_exit(3);
	int code = gorun_barrier(world);
	gorun_last_error(&e);
	want(code == GORUN_ERR_PEER && e.rank == 1 && strcmp(e.op, "Barrier") == 0 && e.seq > 0);
	printf("%s\n", e.text);
	return gorun_exit_code();
}
