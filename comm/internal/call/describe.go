package call

import (
	"fmt"
	"hash/fnv"
	"sync"

	"github.com/gorun/gorun/comm/internal/reduce"
)

// Describe writes a call as its caller would have: "Broadcast(float32 × 8, from 2)".
func Describe(c Call) string {
	kind := Kind(c.Op)
	switch kind {
	case KindBarrier, KindMonitoredBarrier, KindSplit, KindSendObjects, KindRecvObjects:
		return kind.String()
	case KindNewGroup:
		tuned := ""
		if c.Detail != 0 {
			tuned = fmt.Sprintf(", tuning with checksum %08x", c.Detail)
		}
		return fmt.Sprintf("NewGroup(%s%s)", describeList(c, "ranks"), tuned)
	case KindNewMesh:
		return fmt.Sprintf("NewMesh(%s, %s)", describeList(c, "shape"), describeNames(c.Detail))
	default:
	}
	what, more := TypeName(c), ""
	if reduce.Type(c.Type) == TypeObject {
		more = fmt.Sprintf(", at most %d bytes", c.Detail)
	}
	if kind.HasCount() {
		what += fmt.Sprintf(" × %d", c.Count)
	}
	switch {
	case kind == KindAllReduceCoalesced:
		what += fmt.Sprintf(" in buffers: %d", c.Root)
		more = ", " + opName(c.Reduce, 0)
	case c.Reduce != 0:
		more = ", " + opName(c.Reduce, c.Detail)
	}
	if int(kind) < len(kindNames) && kindNames[kind].root != "" {
		more += fmt.Sprintf(", %s %d", kindNames[kind].root, c.Root)
	}
	return fmt.Sprintf("%v(%s%s)", kind, what, more)
}

// TypeName returns the type of what c moves. It is empty if c moves nothing.
func TypeName(c Call) string {
	switch t := reduce.Type(c.Type); t {
	case 0:
		return ""
	case TypeObject:
		return "object"
	default:
		return t.String()
	}
}

// meshNames has the names of dimensions that this rank has used, by their checksum, which is what travels.
var meshNames sync.Map

// describeNames describes the names with a checksum.
func describeNames(detail uint32) string {
	if names, ok := meshNames.Load(detail); ok {
		return fmt.Sprintf("names %q", names)
	}
	return fmt.Sprintf("other names, with checksum %08x", detail)
}

// SetMesh sets shape and names as what ranks have to agree on in a NewMesh.
func SetMesh(call *Call, shape []int, names []string) {
	SetList(call, shape)
	call.Detail = uint32(Checksum(names))
	meshNames.Store(call.Detail, names)
}

// Checksum returns a 64-bit FNV-1a hash of values. It is the same on every rank.
func Checksum(values ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%#v", values)
	return h.Sum64()
}
