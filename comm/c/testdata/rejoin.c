/* A rank dies, and another process takes its place in the next round. */
#include "check.h"
#include <unistd.h>

int main(void)
{
	gorun_error e;
	int one = 1, sum = 0;
	gorun_comm before;
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
		wants_error(gorun_barrier(before), GORUN_ERR_ARGUMENT, "is no group");
		must(gorun_rank(world, &rank));
	}
	must(gorun_all_reduce(world, &one, &sum, 1, GORUN_INT32, GORUN_SUM));
	want(sum == size);
	printf("round %s\n", getenv("GORUN_ROUND"));
	return end();
}
