// Package topology finds out which CPUs, caches, NUMA nodes and GPUs this machine has and how many of them this
// process may use, and decides which of them each worker gets.
//
//	m, err := topology.Read(os.DirFS("/"))
//	allowed, err := topology.Allowed()
//	bindings, err := topology.Bind(m.Within(allowed), topology.Node, workers, nil) // one per local rank
//	restore, err := topology.Apply(bindings[0].CPUs, bindings[0].Nodes)            // then fork, then restore
//
// It reads everything through an fs.FS rooted at /, so that a few files can simulate any machine. A file that
// cannot be read counts as missing, because containers hide many. A malformed file is an error.
//
// # How many
//
// CPUCount returns the number of CPUs that this process can keep busy: those of its affinity mask, but no more
// than the CPU time that its cgroup and all cgroups above it grant, rounded up.
//
// Accelerators lists the devices that a worker sees, without any vendor's library: what CUDA_VISIBLE_DEVICES and
// its like pick, as the vendor's runtime reads them, out of what the kernel shows and this process has a device
// file for. NVIDIA's devices are in the order of their PCI addresses, which is CUDA's own where all are of one
// model, or else with CUDA_DEVICE_ORDER=PCI_BUS_ID.
//
// # Who gets which CPUs
//
// Every worker has a home, one NUMA node. With GPUs it is the node that the worker's GPU is on; if that is not
// known, it is the only node, and with several nodes it is an error. Without GPUs, the workers are divided over the
// sockets and then over the nodes of each, so that a physical core is shared by as few workers as can be: a node
// with twice the cores gets twice the workers. Nodes are taken in blocks of local ranks. A node without CPUs, such
// as memory on an expansion card, is nobody's home. A Policy, with torchrun's names, says what a worker gets there:
//
//	node          all CPUs of its home
//	socket        all CPUs of all nodes on the socket of its home
//	exclusive     physical cores of its home that no other worker gets: as many for each, and one more for the
//	              lowest local ranks if they do not divide evenly; more workers than cores is an error
//	core-complex  the CPUs of its home that share one L3 cache, the largest such groups first; workers take turns
//	              if there are more of them than groups
//
// The hardware threads of a core always stay together. All this applies to the CPUs of the Machine: use Within to
// remove those that this process may not use.
package topology
