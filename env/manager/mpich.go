package manager

import "strings"

var mpich = &Manager{
	Name: "MPICH", Starts: "mpiexec", onePerNode: "mpiexec -ppn 1", find: findPMI, by: "PMI_RANK", others: []string{"PMI_SIZE"},
}

// findPMI reads what MPICH's mpiexec and others that speak PMI have set. Slurm and Flux set these variables too, and say more.
func findPMI(v *variables) *Task {
	if !v.has("PMI_RANK") || v.has("FLUX_TASK_RANK") || isSlurmPMI(v) {
		return nil
	}
	t := &Task{Rank: v.number("PMI_RANK"), Size: v.number("PMI_SIZE")}
	local := 0 // not known
	if t.Size == 1 {
		local = 1
	}
	t.LocalRank, t.LocalSize = v.numberOr("MPI_LOCALRANKID", 0), v.numberOr("MPI_LOCALNRANKS", local)
	t.ID, t.Sources.ID = v.text("PMI_JOBID"), "PMI_JOBID"
	if t.ID == "" {
		t.ID, t.Sources.ID, t.Unnamed = "mpiexec", "MPICH", true
	}
	if t.LocalSize > 0 {
		t.countNodes("PMI_SIZE", "PMI_RANK")
	}
	return t
}

// isSlurmPMI reports whether srun has set PMI_RANK (srun --mpi=pmi2), and not an mpiexec that runs in a step of Slurm.
func isSlurmPMI(v *variables) bool {
	return strings.HasPrefix(v.text("SLURM_MPI_TYPE"), "pmi") && v.text("PMI_RANK") == v.text("SLURM_PROCID") && v.text("PMI_SIZE") == v.text("SLURM_STEP_NUM_TASKS")
}
