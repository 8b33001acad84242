package wait

// Processors is what the ranks of a machine have to run on.
type Processors struct {
	CPUs   int
	Ranks  int  // of all groups
	Shared bool // whether some of them are goroutines of one process
}

// Oversubscribed reports whether there are more ranks than processors.
func (p Processors) Oversubscribed() bool { return p.Ranks > p.CPUs }

// ranksPerCPU is the most ranks that a team may have for every processor. With more, ranks that wait for each other in turn do
// better with messages, which the kernel keeps for them.
const ranksPerCPU = 32

// Suffice reports whether they are enough for n ranks to work together in shared memory.
func (p Processors) Suffice(n int) bool { return n <= ranksPerCPU*p.CPUs }
