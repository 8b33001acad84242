/* fork METHOD TRANSPORT: rank 1 is killed while its forked child lives on, until its input ends. The child has none of the
 * library's descriptors, and all of its own, so that rank 0 learns of the death at once. */
#include "check.h"
#include <dirent.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* links returns how many descriptors of this process are of files whose name begins so. */
static int links(const char *prefix)
{
	int n = 0;
	char name[64] = "", path[300];
	DIR *all = opendir("/proc/self/fd");
	for (struct dirent *entry; (entry = readdir(all)) != NULL; memset(name, 0, sizeof name)) {
		snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
		n += readlink(path, name, sizeof name - 1) > 0 && strncmp(name, prefix, strlen(prefix)) == 0;
	}
	closedir(all);
	return n;
}

static void in_child(int parent, int sockets, int memory)
{
	char end;
	wants_error(gorun_barrier(world), GORUN_ERR_FORKED, "forked");
	want(links("socket:") == sockets);
	want(links("/memfd:") == memory);
	want(links("anon_inode:[eventpoll]") <= 1 && links("anon_inode:[eventfd]") <= 1); /* those of Go's runtime */
	want(write(parent, "", 1) == 1);
	want(read(0, &end, 1) == 0);
	_exit(0);
}

int main(int argc, char **argv)
{
	int pair[2];
	void *memory;
	char ready;
	want(argc == 3);
	rank = atoi(getenv("RANK"));
	want(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	int sockets = links("socket:"), memfds = links("/memfd:");
	must(gorun_init(&(gorun_options){.init_method = argv[1], .transport = argv[2], .rank = rank, .size = 2}, &world));
	must(gorun_alloc(world, 1 << 20, &memory));
	must(gorun_all_reduce(world, memory, memory, 1 << 17, GORUN_FLOAT64, GORUN_SUM));
	want(links("socket:") > sockets); /* or it is no test */
	if (rank == 1) {
		if (fork() == 0)
			in_child(pair[1], sockets, memfds);
		want(read(pair[0], &ready, 1) == 1);
	}
	must(gorun_barrier(world));
	if (rank == 1)
		raise(SIGKILL);
	gorun_error e;
	wants_error(gorun_barrier(world), GORUN_ERR_PEER, "rank 1");
	gorun_last_error(&e);
	want(e.rank == 1);
	return 0;
}
