//go:build !schedule

package cpu

import (
	"os"
	"strconv"
	"strings"
	"sync"
)

// LastLevelCache returns the bytes of the largest cache of a processor, which others may share, or 0 if the system does not say.
var LastLevelCache = sync.OnceValue(func() (largest int) {
	const caches = "/sys/devices/system/cpu/cpu0/cache"
	list, err := os.ReadDir(caches)
	if err != nil {
		return 0
	}
	for _, c := range list {
		text, err := os.ReadFile(caches + "/" + c.Name() + "/size")
		if err != nil {
			continue
		}
		if kib, isKiB := strings.CutSuffix(strings.TrimSpace(string(text)), "K"); isKiB {
			n, _ := strconv.Atoi(kib) // 0 if it is something else
			largest = max(largest, n<<10)
		}
	}
	return largest
})
