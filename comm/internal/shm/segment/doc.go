// Package segment has memory that processes share: sealed memfds. A segment leaves no name behind, and is gone with the last process that
// maps it. A process gets a segment by its descriptor, which package acceptor passes.
package segment

// PageSize is the unit of the layout of segments. LargePage is the bytes of a large page.
const (
	PageSize  = 4 << 10
	LargePage = 2 << 20
)

// WholePages is n rounded up to whole pages.
func WholePages(n int) int { return (n + PageSize - 1) / PageSize * PageSize }
