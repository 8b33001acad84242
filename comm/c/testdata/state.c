/* A state with a part of each rank. In round 1, rank 1 dies, and gets its part from the other one. */
#include "check.h"
#include <unistd.h>

static gorun_state state;
static char part[16];

/* take copies the variables for the next commit. */
static void take(const char *name, int first)
{
	gorun_entry e = {.name = "numbers", .tree = "tree", .tree_length = 4, .size = 1000 * sizeof(int)};
	must(gorun_state_take(state, name, &e, 1));
	for (int i = 0; i < 1000; i++)
		((int *)e.memory)[i] = first + i;
}

static void wants_entries(const char *name, int first)
{
	gorun_entry e;
	int n;
	must(gorun_state_entries(state, name, &e, 1, &n));
	want(n == 1 && strcmp(e.name, "numbers") == 0 && e.tree_length == 4 && memcmp(e.tree, "tree", 4) == 0 && e.size == 1000 * sizeof(int));
	want(((int *)e.memory)[0] == first && ((int *)e.memory)[999] == first + 999);
}

static void sync_state(void)
{
	gorun_field field = {.name = "numbers", .type = "int32 × 1000", .is_array = 1};
	must(gorun_state_sync(state, world, 1, &field, 1));
}

int main(void)
{
	int n;
	begin();
	snprintf(part, sizeof part, "part %d", rank);
	const char *parts[] = {part, part};
	wants_error(gorun_state_create(parts, 2, &state), GORUN_ERR_ARGUMENT, "two parts have the name");
	wants_error(gorun_state_create(NULL, 1, &state), GORUN_ERR_ARGUMENT, "parts is NULL");
	wants_error(gorun_state_commit(77), GORUN_ERR_ARGUMENT, "77 is no state");
	must(gorun_state_create(parts, 1, &state));
	must(gorun_state_entries(state, "", NULL, 0, &n));
	want(n == 0);
	wants_error(gorun_state_take(state, "another", &(gorun_entry){.name = "x"}, 1), GORUN_ERR_ARGUMENT, "no part \"another\"");
	wants_error(gorun_state_take(state, part, &(gorun_entry){.name = "x", .tree_length = 1}, 1), GORUN_ERR_ARGUMENT, "x");
	wants_error(gorun_state_commit(state), GORUN_ERR_ARGUMENT, "has not been taken");
	take(part, 10 * rank);
	if (rank == 0)
		take("", 7);
	sync_state();
	if (strcmp(getenv("GORUN_ROUND"), "1") == 0) {
		wants_entries("", 7);
		wants_entries(part, 10 * rank);
		take("", 8);
		take(part, 100 * rank);
		must(gorun_state_commit(state));
		must(gorun_state_wait(state));
		if (rank == 1)
			_exit(3);
		want(gorun_barrier(world) == GORUN_ERR_PEER);
		must(gorun_rejoin(&world));
		sync_state();
	}
	wants_entries("", 8);
	wants_entries(part, 100 * rank);
	must(gorun_state_free(state));
	wants_error(gorun_state_wait(state), GORUN_ERR_CLOSED, "State");
	printf("round %s\n", getenv("GORUN_ROUND"));
	return end();
}
