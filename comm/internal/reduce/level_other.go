//go:build !amd64

package reduce

// levels are the names of those that this machine has, the best one last.
func levels() []string { return []string{"portable"} }

func newLevel(string) *level { return portable() }
