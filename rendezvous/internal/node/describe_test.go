package node

import (
	"fmt"
	"path"
	"strings"

	"github.com/gorun/gorun/rendezvous"
)

// describe is an event or an action in one line, without what random bits decide.
func describe(is any) string {
	name := strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", is), "*"), "node.")
	var what any
	switch is := is.(type) {
	case asked:
		return describe(is.request)
	case answered:
		name, _, _ = strings.Cut(describe(is.request), ":")
		what = describeAnswer(is)
	case start:
		return describe(is.task)
	case joinCalled:
		what = is.self.ID
	case joinCancelled:
		what = is.err
	case portReserved:
		what = is.err
	case reportCalled:
		what = fmt.Sprintf("round %d: %s", is.round, describeReport(is.doc))
	case leaveCalled:
		what = is.why
	case jobChanged:
		var keys []string
		for _, e := range is.events {
			keys = append(keys, map[bool]string{true: "delete ", false: "put "}[e.Deleted]+path.Base(e.Key))
		}
		what = strings.Join(keys, ", ")
	case agentConnected:
		what = fmt.Sprintf("%+d", is.more)
	case peerObserved:
		what = describeError(is.err)
	case rank0Called:
		what = is.err

	case failJoin:
		what = is.err
	case enterRound:
		what = fmt.Sprintf("%d, rank %d of %d, restarts %d", is.round.ID, is.round.Self, is.round.Size, is.round.Restarts)
	case reservePort:
		what = is.port
	case endRound:
		what = is.why
	case answerReport:
		what = describeError(is.err)
	case showReason:
		what = is.reason
	case showNeed:
		what = fmt.Sprint(is.nodes)
	case leaveJob:
		if what = "no report"; is.round > 0 {
			what = fmt.Sprintf("round %d: %s", is.round, describeReport(is.report))
		}
	case logLine:
		what = fmt.Sprint(is.level, " ", is.text)
	case stop:
		if what = is.name; strings.HasPrefix(is.name, "peer ") {
			what = "peer"
		}
	case callRank0:
		what = fmt.Sprintf("of round %d on %s", is.round, is.rank0.Host)
	case confirmPeers:
		what = fmt.Sprintf("round %d: %d", is.round, len(is.named))
	case *readJob:
		what = map[bool]string{true: "all", false: "for this node"}[is.whole]
	case *enrolNode:
		what = fmt.Sprintf("try %d, joining %t, anew %t", is.self.Try, is.self.Joining, is.anew)
	case *writeDecision:
		what = describeDecision(is.decision)
	case *publishStatus:
		what = is.reason
	case *recordReport:
		what = fmt.Sprintf("round %d: %s", is.round, describeReport(is.doc))
	case *evictAgents:
		what = len(is.ended)
	case *reportLost:
		what = is.doc.Outcome.Reason
	}
	if text := fmt.Sprint(what); what != nil && text != "" {
		return name + ": " + text
	}
	return name
}

// describeAnswer is what a request has found.
func describeAnswer(a answered) string {
	text := describeError(a.err)
	switch r := a.request.(type) {
	case *renewLease:
		text = map[bool]string{true: "lost"}[r.lost] + text
	case *readJob:
		if a.err == nil {
			text = describeView(r.now) + map[bool]string{true: ", etcd has gone back"}[r.lostHistory]
		}
	case *enrolNode:
		text = fmt.Sprintf("try %d%s", r.self.Try, text)
	case *explainOutage:
		text = r.why.Error()
	case *evictAgents:
		text = fmt.Sprintf("%d of %d%s", len(r.resolved), len(r.ended), text)
	}
	return text
}

func describeError(err error) string {
	if err == nil {
		return ""
	}
	return " failed: " + err.Error()
}

func describeReport(d reportDoc) string {
	switch {
	case d.Failure != nil:
		return d.Failure.String()
	case d.Left != nil:
		return fmt.Sprintf("left: %+v", *d.Left)
	}
	return "success"
}

func describeDecision(d rendezvous.Decision) string {
	switch {
	case d.Close != nil:
		return fmt.Sprintf("the job ends with code %d", d.Close.Code)
	case d.Over != nil:
		return fmt.Sprintf("the round is over, restarts %d: %s", d.Over.Restarts, d.Over.Why)
	case d.Form != nil:
		return fmt.Sprintf("round %d of %d nodes, restarts %d", d.Form.ID, len(d.Form.Members), d.Form.Restarts)
	}
	return d.Wait
}

func describeView(v *view) string {
	text := "no job"
	if v.config.rev > 0 {
		text = "a job"
	}
	if v.leader != nil {
		text += " led by " + v.leader.Host
	}
	if v.current != nil {
		text += fmt.Sprintf(", round %d", v.current.Round)
		if v.current.Over != nil {
			text += " is over"
		}
	}
	if v.lost.Job != "" {
		text += ", a job was lost"
	}
	if v.state != nil {
		text += fmt.Sprintf(", closed with code %d", v.state.Outcome.Code)
	}
	if v.whole {
		text += fmt.Sprintf(", %d nodes, %d reports", len(v.nodes), len(v.reports))
	}
	return text
}
