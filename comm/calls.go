package comm

import (
	"fmt"

	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// callKind is the operation of an endpoint.Call. The numbers travel between ranks.
type callKind uint8

const (
	callSend callKind = iota + 1
	callRecv
	callProbe
	callAllReduce
	callReduce
	callReduceScatter
	callReduceScatterV
	callScan
	callExScan
	callBroadcast
	callAllGather
	callAllGatherV
	callGather
	callGatherV
	callScatter
	callScatterV
	callAllToAll
	callAllToAllV
	callBarrier
	callNewGroup
	callSplit
	callNewMesh
	callAllReduceCoalesced
	callSendObjects
	callRecvObjects
	callBroadcastObjects
	callAllGatherObject
	callGatherObject
	callScatterObject
	callMonitoredBarrier
)

// typeObject is the type of messages that are objects.
const typeObject reduce.Type = 255

// callNames has the call of every kind, and where its root is if it has one.
var callNames = [...]struct{ name, root string }{
	callSend: {name: "Send"}, callRecv: {name: "Recv"}, callProbe: {name: "Probe"},
	callAllReduce: {name: "AllReduce"}, callReduce: {"Reduce", "to"},
	callReduceScatter: {name: "ReduceScatter"}, callReduceScatterV: {name: "ReduceScatterV"},
	callScan: {name: "Scan"}, callExScan: {name: "ExScan"}, callBroadcast: {"Broadcast", "from"},
	callAllGather: {name: "AllGather"}, callAllGatherV: {name: "AllGatherV"},
	callGather: {"Gather", "to"}, callGatherV: {"GatherV", "to"},
	callScatter: {"Scatter", "from"}, callScatterV: {"ScatterV", "from"},
	callAllToAll: {name: "AllToAll"}, callAllToAllV: {name: "AllToAllV"},
	callBarrier: {name: "Barrier"}, callNewGroup: {name: "NewGroup"}, callSplit: {name: "Split"},
	callNewMesh: {name: "NewMesh"}, callAllReduceCoalesced: {name: "AllReduceCoalesced"},
	callSendObjects: {name: "SendObjects"}, callRecvObjects: {name: "RecvObjects"},
	callBroadcastObjects: {"BroadcastObjects", "from"}, callAllGatherObject: {name: "AllGatherObject"},
	callGatherObject: {"GatherObject", "to"}, callScatterObject: {"ScatterObject", "from"},
	callMonitoredBarrier: {name: "MonitoredBarrier"},
}

func (k callKind) String() string {
	if k > 0 && int(k) < len(callNames) {
		return callNames[k].name
	}
	return fmt.Sprintf("Call(%d)", uint8(k))
}

// hasCount says whether all ranks give the same length.
func (k callKind) hasCount() bool {
	switch k {
	case callSend, callRecv, callProbe, callReduceScatterV, callAllGatherV, callGatherV, callScatterV, callAllToAllV,
		callAllGatherObject, callGatherObject, callScatterObject:
		return false
	default:
		return true
	}
}

// isForTeams says whether ranks that share memory use it for k. All ranks say the same.
func (k callKind) isForTeams() bool {
	switch k {
	case callAllReduce, callReduce, callReduceScatter, callBroadcast, callAllGather, callGather, callScatter, callAllToAll,
		callBarrier, callAllReduceCoalesced:
		return true
	default:
		return false
	}
}

// describeCall writes a call as its caller would have: "Broadcast(float32 × 8, from 2)".
func describeCall(c endpoint.Call) string {
	kind := callKind(c.Op)
	switch kind {
	case callBarrier, callMonitoredBarrier, callSplit, callSendObjects, callRecvObjects:
		return kind.String()
	case callNewGroup:
		tuned := ""
		if c.Detail != 0 {
			tuned = fmt.Sprintf(", tuning with checksum %08x", c.Detail)
		}
		return fmt.Sprintf("NewGroup(%s%s)", describeList(c, "ranks"), tuned)
	case callNewMesh:
		return fmt.Sprintf("NewMesh(%s, %s)", describeList(c, "shape"), describeNames(c.Detail))
	default:
	}
	what, more := typeName(c), ""
	if reduce.Type(c.Type) == typeObject {
		more = fmt.Sprintf(", at most %d bytes", c.Detail)
	}
	if kind.hasCount() {
		what += fmt.Sprintf(" × %d", c.Count)
	}
	switch {
	case kind == callAllReduceCoalesced:
		what += fmt.Sprintf(" in buffers: %d", c.Root)
		more = ", " + opName(c.Reduce, 0)
	case c.Reduce != 0:
		more = ", " + opName(c.Reduce, c.Detail)
	}
	if int(kind) < len(callNames) && callNames[kind].root != "" {
		more += fmt.Sprintf(", %s %d", callNames[kind].root, c.Root)
	}
	return fmt.Sprintf("%v(%s%s)", kind, what, more)
}

// typeName is what c moves; empty if that is nothing.
func typeName(c endpoint.Call) string {
	switch t := reduce.Type(c.Type); t {
	case 0:
		return ""
	case typeObject:
		return "object"
	default:
		return t.String()
	}
}

// mismatch is the error of operation op number seq when members have called different things.
func (g *Group) mismatch(op string, seq uint64, f *endpoint.Failure) error {
	e := &MismatchError{Op: op, Seq: seq}
	for _, c := range f.Calls {
		e.Calls = append(e.Calls, RankCall{Rank: c.Rank, Call: describeCall(c.Call)})
	}
	if len(f.Calls) != 2 {
		return e
	}
	a, b := &f.Calls[0], &f.Calls[1]
	e.First, e.Last = min(a.Seq, b.Seq), min(a.Seq, b.Seq)
	switch {
	case f.Earlier || a.Seq != b.Seq:
		e.First = min(f.Agreed+1, e.Last)
		e.Calls[0].Call = fmt.Sprintf("#%d %s", a.Seq, e.Calls[0].Call)
		e.Calls[1].Call = fmt.Sprintf("#%d %s", b.Seq, e.Calls[1].Call)
	case a.Call != b.Call && e.Calls[0].Call == e.Calls[1].Call: // lengths of AllReduceCoalesced, for instance
		e.Calls[0].Call += fmt.Sprintf(" with checksum %08x", a.Call.Detail)
		e.Calls[1].Call += fmt.Sprintf(" with checksum %08x", b.Call.Detail)
	case a.Call == b.Call:
		elem := max(g.wireSize(a.Call), 1)
		e.Calls[0].Call += fmt.Sprintf(" expecting %d elements from rank %d", a.Bytes/elem, b.Rank)
		e.Calls[1].Call += fmt.Sprintf(" sending %d elements to rank %d", b.Bytes/elem, a.Rank)
	}
	if a.Rank > b.Rank {
		e.Calls[0], e.Calls[1] = e.Calls[1], e.Calls[0]
	}
	return e
}

// wireSize is the bytes that an element takes in the messages of c.
func (g *Group) wireSize(c endpoint.Call) int {
	t, kernel, more := reduce.Type(c.Type), reduce.Sum, c.Reduce == codePreMulSum || c.Reduce == uint8(Avg)
	if c.Reduce > 0 && int(c.Reduce) < len(basicOps) {
		kernel = basicOps[c.Reduce].kernel
	}
	if c.Reduce == 0 || c.Reduce == codeOwn || !g.widens(t, kernel, more, false) {
		return t.Size()
	}
	return reduce.Float32.Size()
}
