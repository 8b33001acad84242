// Gen prints the assembly of package reduce and the table of its functions, from one description: kernels.go,
// integers.go and floats.go.
package main

import (
	"log"
	"os"
)

func main() {
	for name, text := range files() {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// files are the generated files of package reduce.
func files() map[string][]byte {
	all := kernels()
	return map[string][]byte{
		"avx2_amd64.s":     assembly(avx2, all),
		"avx512_amd64.s":   assembly(avx512, all),
		"kernels_amd64.go": table(all),
	}
}
