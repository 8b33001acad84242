package agent

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func show(actions []action) string {
	var out []string
	for _, a := range actions {
		switch a := a.(type) {
		case finish:
			out = append(out, fmt.Sprintf("finish{%+v}", a.err))
		case report:
			what := "success"
			if a.failed != nil {
				what = fmt.Sprintf("rank %d", a.failed.Rank)
			}
			out = append(out, "report{"+what+"}")
		case announce:
			out = append(out, fmt.Sprintf("announce{rank %d, %d others}", a.Rank, a.others))
		case diagnose:
			out = append(out, map[bool]string{false: "diagnose{}", true: "diagnose{own}"}[a.hung != nil])
		case fail:
			out = append(out, fmt.Sprintf("fail{rank %d}", a.Rank))
		case answer:
			out = append(out, fmt.Sprintf("answer{%s}", strings.TrimPrefix(fmt.Sprint(a.by.spelling(), " ", int(a.sig), " ", a.left, " ", a.kills), " ")))
		case leave:
			out = append(out, fmt.Sprintf("leave{%s}", strings.TrimPrefix(fmt.Sprint(a.by.spelling(), " ", int(a.sig)), " ")))
		case reply:
			out = append(out, map[bool]string{true: "accept{}", false: "refuse{}"}[a.err == nil])
		case restart, scale, collect:
			out = append(out, strings.TrimPrefix(fmt.Sprintf("%T{}", a), "agent."))
		default:
			out = append(out, strings.TrimPrefix(fmt.Sprintf("%T%v", a, a), "agent."))
		}
	}
	return strings.Join(out, " ")
}

// TestTable is the whole policy by state. Run it with -v to see the table.
func TestTable(t *testing.T) {
	const want = `
joining    started                  -> running
joining    startFailed              -> done       finish{no round}
joining    interrupted              -> stopping   cancelJoin{} answer{2 -1 false}
joining    timedOut                 -> stopping   cancelJoin{} answer{15 -1 false}
joining    signalled                -> joining
joining    suspended                -> joining    suspend{}
joining    commanded stop           -> stopping   accept{} cancelJoin{} answer{gorun stop 15 -1 false}
joining    commanded kill           -> stopping   accept{} cancelJoin{} answer{gorun stop --kill 15 -1 false} answer{gorun stop --kill 15 -1 true}
joining    commanded restart        -> joining    refuse{}
joining    commanded scale          -> joining    scale{}
joining    commanded stacks         -> joining    refuse{}
running    workerExited 0           -> running
running    workerExited 1           -> stopping   stop{15} report{rank 0} announce{rank 0, 1 others}
running    gangGone                 -> waiting    report{success}
running    roundOver new            -> stopping   stop{15}
running    roundOver closed         -> stopping   stop{15}
running    roundOver closed by hang -> diagnosing diagnose{}
running    hung                     -> diagnosing report{rank 1} diagnose{own}
running    interrupted              -> stopping   stop{2} leave{2} answer{2 2 false}
running    timedOut                 -> stopping   stop{15} leave{15} answer{15 2 false}
running    signalled                -> running    forward{10}
running    suspended                -> running    suspend{}
running    commanded stop           -> stopping   accept{} stop{15} leave{gorun stop 15} answer{gorun stop 15 2 false}
running    commanded kill           -> stopping   accept{} stop{15} leave{gorun stop --kill 15} answer{gorun stop --kill 15 2 false} kill{} answer{gorun stop --kill 15 2 true}
running    commanded restart        -> running    restart{}
running    commanded scale          -> running    scale{}
running    commanded stacks         -> running    collect{}
diagnosing workerExited 0           -> diagnosing
diagnosing workerExited 1           -> diagnosing
diagnosing gangGone                 -> diagnosing
diagnosing roundOver new            -> diagnosing
diagnosing roundOver closed         -> diagnosing
diagnosing reported ok              -> diagnosing
diagnosing reported failed          -> diagnosing
diagnosing diagnosed                -> stopping   fail{rank 0} stop{15} announce{rank 0, 1 others}
diagnosing interrupted              -> stopping   fail{rank 0} stop{2} announce{rank 0, 1 others} leave{2} answer{2 2 false}
diagnosing timedOut                 -> stopping   fail{rank 0} stop{15} announce{rank 0, 1 others} leave{15} answer{15 2 false}
diagnosing signalled                -> diagnosing
diagnosing suspended                -> diagnosing suspend{}
diagnosing commanded stop           -> stopping   accept{} fail{rank 0} stop{15} announce{rank 0, 1 others} leave{gorun stop 15} answer{gorun stop 15 2 false}
diagnosing commanded kill           -> stopping   accept{} fail{rank 0} stop{15} announce{rank 0, 1 others} leave{gorun stop --kill 15} answer{gorun stop --kill 15 2 false} kill{} answer{gorun stop --kill 15 2 true}
diagnosing commanded restart        -> diagnosing refuse{}
diagnosing commanded scale          -> diagnosing scale{}
diagnosing commanded stacks         -> diagnosing collect{}
stopping   workerExited 0           -> stopping
stopping   workerExited 1           -> stopping
stopping   gangGone                 -> waiting
stopping   roundOver new            -> stopping
stopping   roundOver closed         -> stopping
stopping   reported ok              -> stopping
stopping   reported failed          -> stopping
stopping   interrupted              -> stopping   leave{2} answer{2 1 false}
stopping   timedOut                 -> stopping   leave{15} answer{15 1 false}
stopping   signalled                -> stopping
stopping   suspended                -> stopping   suspend{}
stopping   commanded stop           -> stopping   accept{} leave{gorun stop 15} answer{gorun stop 15 1 false}
stopping   commanded kill           -> stopping   accept{} leave{gorun stop --kill 15} answer{gorun stop --kill 15 1 false} kill{} answer{gorun stop --kill 15 1 true}
stopping   commanded restart        -> stopping   refuse{}
stopping   commanded scale          -> stopping   scale{}
stopping   commanded stacks         -> stopping   collect{}
waiting    roundOver new            -> joining    join{}
waiting    roundOver closed         -> done       finish{the job is closed: too few nodes}
waiting    reported ok              -> waiting    barrier{}
waiting    reported failed          -> done       finish{<nil>}
waiting    barrierOver              -> done       finish{<nil>}
waiting    interrupted              -> done       finish{<nil>}
waiting    timedOut                 -> done       finish{<nil>}
waiting    signalled                -> waiting
waiting    suspended                -> waiting    suspend{}
waiting    commanded stop           -> done       accept{} finish{<nil>}
waiting    commanded kill           -> done       accept{} finish{<nil>}
waiting    commanded restart        -> waiting    refuse{}
waiting    commanded scale          -> waiting    scale{}
waiting    commanded stacks         -> waiting    refuse{}
done       interrupted              -> done
done       timedOut                 -> done
done       signalled                -> done
done       suspended                -> done
done       commanded stop           -> done       refuse{}
done       commanded kill           -> done       refuse{}
done       commanded restart        -> done       refuse{}
done       commanded scale          -> done       refuse{}
done       commanded stacks         -> done       refuse{}
`
	into := map[state][]event{
		joining:    nil,
		running:    {started{2}},
		diagnosing: {started{2}, hangs(0)},
		stopping:   {started{2}, exited(0, 1)},
		waiting:    {started{2}, gangGone{}},
		done:       {startFailed{errNoRound}},
	}
	whileJoining, exits, whileGang := []event{started{2}, startFailed{errNoRound}}, []event{exited(0, 0), exited(0, 1)}, []event{gangGone{}}
	inRound, answers := []event{newRound, roundOver{reasoned}}, []event{reported{nil}, reported{errAway}}
	always := []event{sigint, timedOut{}, signalled{syscall.SIGUSR1}, suspended{},
		commanded{Command{Kind: CommandStop}}, commanded{Command{Kind: CommandKill}}, commanded{Command{Kind: CommandRestart}}, commanded{Command{Kind: CommandScale}}, commanded{Command{Kind: CommandStacks}}}
	possible := map[state][][]event{
		joining:    {whileJoining, always},
		running:    {exits, whileGang, inRound, {roundOver{closedBy(hangsFar)}, hangs(1)}, always},
		diagnosing: {exits, whileGang, inRound, answers, {diagnosed{}}, always},
		stopping:   {exits, whileGang, inRound, answers, always},
		waiting:    {inRound, answers, {barrierOver{}}, always},
		done:       {always},
	}
	var table strings.Builder
	for _, s := range []state{joining, running, diagnosing, stopping, waiting, done} {
		for _, group := range possible[s] {
			for _, e := range group {
				var m stateMachine
				for _, before := range into[s] {
					m.Step(before)
				}
				name := strings.TrimPrefix(fmt.Sprintf("%T", e), "agent.")
				switch e := e.(type) {
				case workerExited:
					name += fmt.Sprintf(" %d", e.Code())
				case roundOver:
					name += map[bool]string{true: " new", false: " closed"}[e == newRound]
					if isHang(e.err) {
						name += " by hang"
					}
				case commanded:
					name += " " + string(e.Kind)
				case reported:
					name += map[bool]string{true: " ok", false: " failed"}[e.err == nil]
				}
				actions := show(m.Step(e))
				fmt.Fprintln(&table, strings.TrimRight(fmt.Sprintf("%-10s %-24s -> %-10s %s", s, name, m.state, actions), " "))
			}
		}
	}
	t.Log("\n" + table.String())
	if got := "\n" + table.String(); got != want {
		t.Errorf("the table has changed:\n%s\nwant\n%s", got, want)
	}
}
