package flight

import (
	"time"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// A moment is a point in time: a cpu.Stamp, which takes a few nanoseconds, or, with the highest bit set, the time
// since start. The second is the program's time, which a test may set.
type moment uint64

const ofProgram moment = 1 << 63

// start is when the program began.
var start = time.Now()

// now is the program's time. It takes half as long as time.Now.
func now() moment { return moment(time.Since(start)) | ofProgram }

func (m moment) time() time.Time {
	if m&ofProgram == 0 {
		return cpu.Stamp(m).Time()
	}
	return start.Add(time.Duration(m<<1) >> 1) // it may be negative
}
