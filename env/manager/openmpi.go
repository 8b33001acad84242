package manager

var openMPI = &Manager{
	Name: "Open MPI", Starts: "mpirun", onePerNode: "mpirun --map-by ppr:1:node", PassOn: "mpirun -x NAME",
	find: findOpenMPI, by: "OMPI_COMM_WORLD_RANK",
	others: []string{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
}

// findOpenMPI reads what Open MPI's mpirun has set, version 4 or 5. It does not say on which hosts the tasks run.
func findOpenMPI(v *variables) *Task {
	if !v.has("OMPI_COMM_WORLD_RANK") {
		return nil
	}
	t := &Task{
		Rank: v.number("OMPI_COMM_WORLD_RANK"), Size: v.number("OMPI_COMM_WORLD_SIZE"),
		LocalRank: v.number("OMPI_COMM_WORLD_LOCAL_RANK"), LocalSize: v.number("OMPI_COMM_WORLD_LOCAL_SIZE"),
	}
	for _, name := range []string{"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"} {
		if t.ID == "" {
			t.ID, t.Sources.ID = v.text(name), name
		}
	}
	if t.ID == "" {
		t.ID, t.Sources.ID, t.Unnamed = "mpirun", "Open MPI", true
	}
	t.countNodes("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")
	return t
}

// countNodes sets the number of nodes if it follows from the numbers of tasks: all tasks are here, or each is alone on its node. size and
// rank name the variables.
func (t *Task) countNodes(size, rank string) {
	switch t.LocalSize {
	case t.Size:
		t.Nodes = 1
	case 1:
		t.Node, t.Nodes = t.Rank, t.Size
	default:
		return
	}
	t.Sources.Node, t.Sources.Nodes = rank, size
}
