// Package segment is memory that processes share: sealed memfds. A segment has no name that could be left behind, and is gone with
// the last process that maps it. A process gets one by its descriptor, which package acceptor passes.
package segment

// PageSize is the unit in which users lay segments out, LargePage the bytes of a large page.
const (
	PageSize  = 4 << 10
	LargePage = 2 << 20
)

// WholePages is n rounded up to whole pages.
func WholePages(n int) int { return (n + PageSize - 1) / PageSize * PageSize }
