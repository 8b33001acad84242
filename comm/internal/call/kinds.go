// Package call says what a call is in numbers: its kind, and what it does to elements. Ranks tell each other these
// numbers to make sure that they have made the same call, and this package puts them into words again.
package call

import (
	"fmt"

	"github.com/gorun/gorun/comm/internal/reduce"
)

// A Kind says which operation a Call asks for. The numbers travel between ranks.
type Kind uint8

// The kinds of calls.
const (
	KindSend Kind = iota + 1
	KindRecv
	KindProbe
	KindAllReduce
	KindReduce
	KindReduceScatter
	KindReduceScatterV
	KindScan
	KindExScan
	KindBroadcast
	KindAllGather
	KindAllGatherV
	KindGather
	KindGatherV
	KindScatter
	KindScatterV
	KindAllToAll
	KindAllToAllV
	KindBarrier
	KindNewGroup
	KindSplit
	KindNewMesh
	KindAllReduceCoalesced
	KindSendObjects
	KindRecvObjects
	KindBroadcastObjects
	KindAllGatherObject
	KindGatherObject
	KindScatterObject
	KindMonitoredBarrier
)

// TypeObject is the type of messages that are objects.
const TypeObject reduce.Type = 255

// kindNames has the name of every kind and, if it has a root, the preposition before the root.
var kindNames = [...]struct{ name, root string }{
	KindSend: {name: "Send"}, KindRecv: {name: "Recv"}, KindProbe: {name: "Probe"},
	KindAllReduce: {name: "AllReduce"}, KindReduce: {"Reduce", "to"},
	KindReduceScatter: {name: "ReduceScatter"}, KindReduceScatterV: {name: "ReduceScatterV"},
	KindScan: {name: "Scan"}, KindExScan: {name: "ExScan"}, KindBroadcast: {"Broadcast", "from"},
	KindAllGather: {name: "AllGather"}, KindAllGatherV: {name: "AllGatherV"},
	KindGather: {"Gather", "to"}, KindGatherV: {"GatherV", "to"},
	KindScatter: {"Scatter", "from"}, KindScatterV: {"ScatterV", "from"},
	KindAllToAll: {name: "AllToAll"}, KindAllToAllV: {name: "AllToAllV"},
	KindBarrier: {name: "Barrier"}, KindNewGroup: {name: "NewGroup"}, KindSplit: {name: "Split"},
	KindNewMesh: {name: "NewMesh"}, KindAllReduceCoalesced: {name: "AllReduceCoalesced"},
	KindSendObjects: {name: "SendObjects"}, KindRecvObjects: {name: "RecvObjects"},
	KindBroadcastObjects: {"BroadcastObjects", "from"}, KindAllGatherObject: {name: "AllGatherObject"},
	KindGatherObject: {"GatherObject", "to"}, KindScatterObject: {"ScatterObject", "from"},
	KindMonitoredBarrier: {name: "MonitoredBarrier"},
}

func (k Kind) String() string {
	if k > 0 && int(k) < len(kindNames) {
		return kindNames[k].name
	}
	return fmt.Sprintf("Call(%d)", uint8(k))
}

// IsPointToPoint reports whether k is a send, a receive or a probe.
func (k Kind) IsPointToPoint() bool {
	switch k {
	case KindSend, KindRecv, KindProbe, KindSendObjects, KindRecvObjects:
		return true
	default:
		return false
	}
}

// HasCount reports whether all ranks give the same length.
func (k Kind) HasCount() bool {
	switch k {
	case KindSend, KindRecv, KindProbe, KindReduceScatterV, KindAllGatherV, KindGatherV, KindScatterV, KindAllToAllV,
		KindAllGatherObject, KindGatherObject, KindScatterObject:
		return false
	default:
		return true
	}
}

// rooted is a set of kinds, a bit for each.
const rooted = 1<<KindReduce | 1<<KindBroadcast | 1<<KindGather | 1<<KindGatherV | 1<<KindScatter | 1<<KindScatterV |
	1<<KindBroadcastObjects | 1<<KindGatherObject | 1<<KindScatterObject

// HasRoot reports whether k has a root.
func (k Kind) HasRoot() bool { return rooted>>k&1 != 0 }

// HasLengths reports whether all ranks give the same lengths of blocks, one for every rank.
func (k Kind) HasLengths() bool { return k == KindAllGatherV || k == KindReduceScatterV }
