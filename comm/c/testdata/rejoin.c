/* A rank dies, and another process takes its place in the next round. With ROUND_STORE set, ranks meet in a store of their own. */
#include "check.h"
#include <unistd.h>

static int opens;

static int open_store(void *context, gorun_store *store)
{
	char path[4200];
	want(context == &opens);
	opens++;
	snprintf(path, sizeof path, "%s/round-%s", getenv("STORE"), getenv("GORUN_ROUND"));
	return gorun_store_file(path, store);
}

static int fails(void *context, gorun_store *store)
{
	(void)context, (void)store;
	return 17;
}

static void begin_in_store(void)
{
	wants_error(gorun_init_round_store(NULL, NULL, NULL, &world), GORUN_ERR_ARGUMENT, "open is NULL");
	wants_error(gorun_init_round_store(NULL, fails, NULL, &world), GORUN_ERR_FUNCTION, "has returned 17");
	must(gorun_init_round_store(NULL, open_store, &opens, &world));
	want(opens == 1);
	must(gorun_rank(world, &rank));
	must(gorun_size(world, &size));
}

int main(void)
{
	gorun_error e;
	int one = 1, sum = 0;
	gorun_comm before;
	if (getenv("ROUND_STORE"))
		begin_in_store();
	else
		begin();
	if (strcmp(getenv("GORUN_ROUND"), "1") == 0) {
		must(gorun_barrier(world));
		if (rank == 1)
			_exit(3);
		int code = gorun_barrier(world);
		gorun_last_error(&e);
		want(code == GORUN_ERR_PEER && e.rank == 1 && e.has_died && e.exit_code == 3 && e.signal == 0);
		before = world;
		must(gorun_rejoin(&world));
		want(opens == (getenv("ROUND_STORE") ? 2 : 0));
		wants_error(gorun_barrier(before), GORUN_ERR_CLOSED, "Barrier");
		must(gorun_rank(world, &rank));
	}
	must(gorun_all_reduce(world, &one, &sum, 1, GORUN_INT32, GORUN_SUM));
	want(sum == size);
	printf("round %s\n", getenv("GORUN_ROUND"));
	return end();
}
