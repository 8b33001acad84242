package call

import (
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"
	"sync"

	"github.com/gorun/gorun/comm/internal/reduce"
)

// Describe writes a call as its caller would have: "Broadcast(float32 × 8, from 2)".
func Describe(c Call) string {
	kind := c.Kind
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
		return fmt.Sprintf("NewMesh(%s, %s)", describeList(c, "shape"), textOf(c.Detail, "other names,"))
	default:
	}
	what, more := TypeName(c), ""
	if reduce.Type(c.Type) == TypeObject {
		more = fmt.Sprintf(", at most %d bytes", c.Detail)
	}
	switch {
	case kind.HasCount():
		what += fmt.Sprintf(" × %d", c.Count)
	case kind.HasLengths():
		what += " × " + describeLengths(c)
	}
	switch {
	case kind == KindAllReduceCoalesced:
		what += fmt.Sprintf(" in buffers: %d", c.Root)
		more = ", " + opName(c.Reduce, 0)
	case c.Reduce != 0:
		more = ", " + opName(c.Reduce, c.Detail)
	}
	if kind.HasRoot() {
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

// texts has what this rank has used, in words, by the checksum that travels. Other ranks usually run the same program,
// so this rank can describe what they have called.
var texts sync.Map

// textOf returns the text with a checksum. If this rank has none, it is otherwise and the checksum.
func textOf(checksum uint32, otherwise string) string {
	if text, ok := texts.Load(checksum); ok {
		return text.(string)
	}
	return fmt.Sprintf("%s with checksum %08x", otherwise, checksum)
}

// SetMesh sets shape and names as what ranks have to agree on in a NewMesh.
func SetMesh(call *Call, shape []int, names []string) {
	SetList(call, shape)
	call.Detail = uint32(Checksum(names))
	texts.Store(call.Detail, fmt.Sprintf("names %q", names))
}

// Checksum returns a 64-bit FNV-1a hash of values. It is the same on every rank.
func Checksum(values ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%#v", values)
	return h.Sum64()
}

// SetList makes list, of numbers that are not negative, what ranks agree on in call: the numbers themselves, in as few
// bits as the largest of them takes, or a checksum if they are too many for that.
func SetList(call *Call, list []int) {
	width := max(bits.Len(uint(max(0, slices.Max(list)))), 1)
	call.Root = int32(len(list))
	if width*len(list) > 64 {
		call.Reduce, call.Count = 0, Checksum(list)
		return
	}
	call.Reduce, call.Count = uint8(width), 0
	for i, n := range list {
		call.Count |= uint64(n) << (i * width)
	}
}

func listOf(call Call) []int {
	width := int(call.Reduce)
	if width == 0 || width > 64 || int(call.Root) > 64/width { // as no rank has it
		return nil
	}
	list := make([]int, max(0, call.Root))
	for i := range list {
		list[i] = int(call.Count >> (i * width) & (1<<width - 1))
	}
	return list
}

func describeList(call Call, of string) string {
	if list := listOf(call); list != nil {
		return fmt.Sprintf("%s %v", of, list)
	}
	return fmt.Sprintf("%s: %d, with checksum %08x", of, call.Root, uint32(call.Count))
}

// SetLengths makes the lengths of n blocks what ranks agree on in call: the lengths themselves, in as few bits as the
// longest one takes, or a checksum if they are too many for that.
func SetLengths(call *Call, n int, length func(block int) int) {
	longest, checksum := 0, NoLengths
	for i := range n {
		longest, checksum = max(longest, length(i)), AddLength(checksum, length(i))
	}
	width := max(bits.Len(uint(longest)), 1)
	if width*n > 64 {
		call.Root, call.Count = int32(n)<<lengthBits, checksum
		return
	}
	call.Root, call.Count = int32(n)<<lengthBits|int32(width), 0
	for i := range n {
		call.Count |= uint64(length(i)) << (i * width)
	}
}

// lengthBits is how many bits of the root say in how many bits a length is: none if there is a checksum.
const lengthBits = 8

func describeLengths(call Call) string {
	n, width := int(call.Root>>lengthBits), int(call.Root&(1<<lengthBits-1))
	if width == 0 || width > 64 || n < 0 || n > 64/width { // the last three: as no rank has it
		return fmt.Sprintf("%d blocks with checksum %016x", n, call.Count)
	}
	list := make([]uint64, n)
	for i := range list {
		list[i] = call.Count >> (i * width) & (1<<width - 1)
	}
	return fmt.Sprint(list)
}

// NoLengths is the checksum of no lengths. It is a 64-bit FNV-1a hash of whole numbers instead of bytes.
const NoLengths uint64 = 14695981039346656037

// AddLength adds a length to a checksum.
func AddLength(checksum uint64, length int) uint64 {
	return (checksum ^ uint64(length)) * 1099511628211
}
