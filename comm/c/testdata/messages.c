/* Messages, groups, stores and memory. */
#include "check.h"
#include <pthread.h>
#include <unistd.h>

static void test_messages(void)
{
	int32_t in[4] = {rank, 2, 3, 4}, out[4];
	gorun_status st;
	gorun_work send, recv;
	int next = (rank + 1) % size, last = (rank + size - 1) % size, found, done;
	must(gorun_isend(world, in, 4, GORUN_INT32, next, 5, &send));
	must(gorun_irecv(world, out, 4, GORUN_INT32, last, 5, &recv));
	must(gorun_wait(recv, &st));
	want(st.source == last && st.tag == 5 && st.count == 4 && out[0] == last);
	must(gorun_wait(send, NULL));
	wants_error(gorun_wait(send, NULL), GORUN_ERR_ARGUMENT, "is no work");
	must(gorun_iprobe(world, last, 6, &found, &st));
	want(!found);
	must(gorun_barrier(world));
	must(gorun_send(world, in, 2, GORUN_INT32, next, 6));
	must(gorun_probe(world, GORUN_ANY_SOURCE, GORUN_ANY_TAG, &st));
	want(st.source == last && st.tag == 6 && st.count == 2);
	must(gorun_recv(world, out, 4, GORUN_INT32, GORUN_ANY_SOURCE, GORUN_ANY_TAG, &st));
	want(st.count == 2 && out[0] == last);
	must(gorun_irecv(world, out, 4, GORUN_INT32, last, 7, &recv));
	must(gorun_test(recv, &done, NULL));
	want(!done);
	must(gorun_wait_for(recv, 0.05, &done, NULL));
	want(!done);
	must(gorun_barrier(world));
	must(gorun_send(world, in, 3, GORUN_INT32, next, 7));
	do
		must(gorun_test(recv, &done, &st));
	while (!done);
	want(st.count == 3);
	must(gorun_irecv(world, out, 4, GORUN_INT32, last, 9, &recv));
	if (rank == 0)
		usleep(100000);
	must(gorun_send(world, in, 1, GORUN_INT32, next, 9));
	must(gorun_wait_for(recv, 1e300, &done, NULL));
	want(done);
	must(gorun_send(world, in, 4, GORUN_INT32, next, 8));
	wants_error(gorun_recv(world, out, 1, GORUN_INT32, last, 8, NULL), GORUN_ERR_TRUNCATED, "does not fit");
}

static void test_groups(void)
{
	gorun_comm evens, odds, pair, again;
	int n, ranks[8];
	must(gorun_comm_split(world, rank % 2, -rank, &evens));
	must(gorun_size(evens, &n));
	must(gorun_world_ranks(evens, ranks));
	want(n == (size + 1 - rank % 2) / 2 && ranks[0] > ranks[n - 1] - (n == 1) && ranks[0] % 2 == rank % 2);
	must(gorun_comm_create(world, (int[]){1}, 1, &odds));
	want((odds != 0) == (rank == 1));
	if (rank < 2) {
		float one = 1;
		must(gorun_comm_create_group(world, (int[]){0, 1}, 2, "pair", &pair));
		must(gorun_all_reduce(pair, &one, &one, 1, GORUN_FLOAT32, GORUN_SUM));
		want(one == 2);
		must(gorun_close(pair));
		wants_error(gorun_barrier(pair), GORUN_ERR_CLOSED, "Barrier");
	}
	wants_error(gorun_comm_create(world, (int[]){size}, 1, &again), GORUN_ERR_ARGUMENT, "no rank");
	must(gorun_close(evens));
}

static void test_store(void)
{
	gorun_store store;
	char value[8], path[256];
	size_t length;
	int64_t sum;
	int was;
	snprintf(path, sizeof path, "%s/store", getenv("STORE"));
	must(gorun_store_file(path, &store));
	if (rank == 0)
		must(gorun_store_set(store, "key", "value", 5));
	must(gorun_store_wait(store, (const char *[]){"key"}, 1, 60));
	must(gorun_store_get(store, "key", 60, value, sizeof value, &length));
	want(length == 5 && memcmp(value, "value", 5) == 0);
	must(gorun_store_add(store, "sum", 1, &sum));
	want(sum >= 1 && sum <= size);
	wants_error(gorun_store_get(store, "none", 0.01, value, sizeof value, &length), GORUN_ERR_MISSING_KEYS, "nobody has set");
	must(gorun_barrier(world));
	if (rank == 0)
		must(gorun_store_delete(store, "key", &was));
	must(gorun_store_close(store));
	wants_error(gorun_store_set(store, "key", "", 0), GORUN_ERR_CLOSED, "store is closed");
	wants_error(gorun_store_tcp("127.0.0.1:1", NULL, 0.1, &store), GORUN_ERR_OTHER, "127.0.0.1:1");
}

static void test_memory(void)
{
	float *buffer;
	char text[100];
	size_t length;
	must(gorun_alloc(world, 100000 * sizeof *buffer, (void **)&buffer));
	for (int i = 0; i < 100000; i++)
		buffer[i] = rank;
	must(gorun_all_reduce(world, buffer, buffer, 100000, GORUN_FLOAT32, GORUN_MAX));
	for (int i = 0; i < 100000; i++)
		want(buffer[i] == size - 1);
	must(gorun_free(buffer));
	wants_error(gorun_free(buffer), GORUN_ERR_ARGUMENT, "no memory of Alloc");
	must(gorun_flight(text, sizeof text, &length));
	want(strlen(text) == sizeof text - 1 && length > sizeof text && text[0] == '{');
	must(gorun_explain(world, "all_reduce", 8, text, sizeof text, &length));
	want(strncmp(text, "all_reduce of 8 bytes", 21) == 0);
}

static void *barriers(void *comm)
{
	for (int i = 0; i < 200; i++)
		must(gorun_barrier(*(gorun_comm *)comm));
	return NULL;
}

static void test_threads(void)
{
	gorun_comm comms[4];
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		must(gorun_comm_split(world, 0, rank, &comms[i]));
	for (int i = 0; i < 4; i++)
		want(pthread_create(&threads[i], NULL, barriers, &comms[(i + rank) % 4]) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	begin();
	test_messages(), test_groups(), test_store(), test_memory(), test_threads();
	return end();
}
