//go:build !unix

package admission

func descriptors() int { return 8192 }

// peek leaves it to the reader to find out.
func peek(int) (speaks, gone bool) { return true, false }
