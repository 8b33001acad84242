package manager

var flux = &Manager{
	Name: "Flux", Starts: "flux run", onePerNode: "flux run --nodes=NODES --ntasks=NODES",
	find: findFlux, by: "FLUX_TASK_RANK", others: []string{"FLUX_TASK_LOCAL_ID"},
}

// findFlux reads what flux run has set. It does not say on which hosts the tasks run.
func findFlux(v *variables) *Task {
	if !v.has("FLUX_TASK_RANK") {
		return nil
	}
	t := &Task{
		ID: v.text("FLUX_JOB_ID"), Rank: v.number("FLUX_TASK_RANK"), Size: v.number("FLUX_JOB_SIZE"),
		LocalRank: v.number("FLUX_TASK_LOCAL_ID"), Nodes: v.number("FLUX_JOB_NNODES"),
	}
	t.Sources = Sources{ID: "FLUX_JOB_ID", Node: "FLUX_TASK_RANK", Nodes: "FLUX_JOB_NNODES"}
	if t.ID == "" {
		t.ID, t.Sources.ID = "flux", "Flux"
	}
	switch t.Nodes {
	case t.Size:
		t.Node, t.LocalSize = t.Rank, 1
	case 1:
		t.LocalSize = t.Size
	}
	return t
}
