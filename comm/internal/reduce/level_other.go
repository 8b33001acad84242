//go:build !amd64

package reduce

// levels returns the names of the levels that this machine has, the best one last.
func levels() []string { return []string{"portable"} }

func newLevel(string) *level { return portable() }
