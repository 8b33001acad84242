/* Wrong calls, a fork, and the death of a rank. */
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed_op(void *context, void *acc, const void *in, size_t count, gorun_type type) 
{
	return !context + !acc + !in + !count + !type + 1;
}

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
	/* Pointers that are not to memory, or to memory that is read-only. */
	char *nowhere = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *constant = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *wrong[] = {(char *)8, nowhere, constant};
	gorun_status st;
	int n, zero = 0;
	size_t length;
	gorun_store store;
	gorun_op op;
	const char no_memory[] = "a pointer is not to memory";
	for (int i = 0; i < 3; i++) {
		void *p = wrong[i];
		wants_error(gorun_rank(world, p), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_world_ranks(world, p), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_comm_create(world, &zero, 1, p), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_comm_split(world, 0, 0, p), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_init(NULL, p), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_alloc(world, 1, p), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_ibarrier(world, p), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_recv(world, &one, 1, GORUN_FLOAT32, 0, 0, p), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_iprobe(world, 0, 0, p, &st), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_flight(NULL, 0, p), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_explain(world, "barrier", 0, p, 10, &length), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_store_file("", p), GORUN_ERR_ARGUMENT, no_memory);
		if (p == constant)
			continue;
		wants_error(gorun_comm_create(world, p, 1, &none), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_comm_create_group(world, &zero, 1, p, &none), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_init(p, &none), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_abort(world, p), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_store_tcp(p, NULL, 1, &store), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_store_custom(p, &store), GORUN_ERR_ARGUMENT, no_memory);
		wants_error(gorun_op_create(failed_op, NULL, p, 1, 1, &op), GORUN_ERR_ARGUMENT, no_memory);
	}
	must(gorun_isend(world, &one, 1, GORUN_FLOAT32, rank, 0, &work));
	wants_error(gorun_wait(work, (void *)nowhere), GORUN_ERR_ARGUMENT, no_memory);
	must(gorun_recv(world, &one, 1, GORUN_FLOAT32, rank, 0, NULL));
	must(gorun_wait(work, &st));
	wants_error(gorun_send(world, NULL, 1, GORUN_FLOAT32, rank, 0), GORUN_ERR_ARGUMENT, "is NULL");
	wants_error(gorun_recv(world, NULL, 1, GORUN_FLOAT32, rank, 0, NULL), GORUN_ERR_ARGUMENT, "is NULL");
	wants_error(gorun_broadcast(world, NULL, 1, GORUN_FLOAT32, 0), GORUN_ERR_ARGUMENT, "is NULL");
	wants_error(gorun_all_reduce(world, NULL, NULL, 1, GORUN_FLOAT32, GORUN_SUM), GORUN_ERR_ARGUMENT, "is NULL");
	wants_error(gorun_all_to_all(world, NULL, NULL, 1, GORUN_FLOAT32), GORUN_ERR_ARGUMENT, "is NULL");
	wants_error(gorun_all_reduce_coalesced(world, &(gorun_buffer){NULL, 1}, 1, GORUN_FLOAT32, GORUN_SUM), GORUN_ERR_ARGUMENT, "is NULL");
	must(gorun_rank(world, &n));
	want(n == rank);
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
