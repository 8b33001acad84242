package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/status"
)

// A Client asks one agent.
type Client struct {
	http http.Client
}

// NewClient returns a client of the agent to which dial connects.
func NewClient(dial func(ctx context.Context) (net.Conn, error)) *Client {
	connect := func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
	return &Client{http.Client{
		Transport:     &http.Transport{DialContext: connect, MaxResponseHeaderBytes: maxHeader, DisableKeepAlives: true, Proxy: nil},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// At returns a client of the agent with this socket.
func At(path string) *Client {
	return NewClient(func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "unix", path) })
}

// HasEnded reports whether err, which a method of a Client has returned, means that the agent has ended.
func HasEnded(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// Status returns the agent's status. The error is a *status.VersionError if the agent is of another version.
func (c *Client) Status(ctx context.Context) (*status.Node, error) {
	text, err := c.text(ctx, http.MethodGet, "/status")
	if err != nil {
		return nil, err
	}
	return status.Decode(text)
}

// Command asks something of the agent. Its Answer is not used. The error says why the agent refuses, or cannot be asked.
func (c *Client) Command(ctx context.Context, command agent.Command) (*Reply, error) {
	path := "/" + string(command.Kind)
	switch {
	case command.Kind == agent.CommandScale:
		path += fmt.Sprintf("?nodes=%d:%d", command.Nodes[0], command.Nodes[1])
	case command.Round > 0:
		path += fmt.Sprintf("?round=%d", command.Round)
	case command.Force:
		path += "?force"
	}
	text, err := c.text(ctx, http.MethodPost, path)
	if err != nil {
		return nil, err
	}
	return parseReply(text)
}

const maxStacks = 1 << 20 // workers of a Reply

func parseReply(text []byte) (*Reply, error) {
	r := &Reply{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("its answer cannot be read: %w", err)
	}
	if len(r.Stacks) > maxStacks {
		return nil, fmt.Errorf("its answer has %d workers", len(r.Stacks))
	}
	if r.Error != "" {
		return nil, errors.New(agent.Printable(r.Error))
	}
	return r, nil
}

// Logs calls each with the last lines of the workers, or of one of them if rank is not negative; with follow, also with lines that come,
// unfinished ones too, until the job ends on that node, or ctx does. It goes on reading if a call of each takes long. If too much comes
// meanwhile, lines are missed.
func (c *Client) Logs(ctx context.Context, rank int, follow bool, each func(Line)) error {
	path := "/logs?"
	if rank >= 0 {
		path += fmt.Sprintf("rank=%d&", rank)
	}
	if follow {
		path += "follow&unfinished"
	}
	body, err := c.ask(ctx, http.MethodGet, path)
	if err != nil {
		return err
	}
	lines, read := newLineQueue(maxQueue), make(chan error, 1)
	go func() {
		defer lines.close()
		defer func() { _ = body.Close() }() // it was only read
		read <- readLines(body, lines.push)
	}()
	for line, ok := lines.pop(); ok && ctx.Err() == nil; line, ok = lines.pop() {
		each(line)
	}
	return <-read
}

// errBroken means that the agent has not said all that it was about to say.
var errBroken = errors.New("the connection broke: gorun was killed there, or cannot be reached any more")

// readLines calls each with every line. A line without an end is none.
func readLines(from io.Reader, each func(Line)) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLineSize)
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		if atEOF && len(data) > 0 && bytes.IndexByte(data, '\n') < 0 {
			return len(data), nil, nil
		}
		return bufio.ScanLines(data, atEOF)
	})
	for lines.Scan() {
		line, err := parseLine(lines.Bytes())
		if err != nil {
			return err
		}
		each(line)
	}
	if hasBroken(lines.Err()) {
		return errBroken
	}
	return lines.Err()
}

func hasBroken(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// maxLineSize is how many bytes a Line may have as JSON, where a byte of its text may need 6, or 10 as agent.Printable writes it.
const maxLineSize = 16 * maxLine

func parseLine(text []byte) (line Line, err error) {
	if err := json.Unmarshal(text, &line); err != nil {
		return Line{}, fmt.Errorf("a line of its logs cannot be read: %w", err)
	}
	if line.Rank < 0 || line.LocalRank < 0 || line.Stream != streamNames[0] && line.Stream != streamNames[1] {
		return Line{}, fmt.Errorf("a line of its logs makes no sense: rank %d, stream %.20q", line.Rank, line.Stream)
	}
	line.Text = agent.Printable(line.Text)
	return line, nil
}

// text returns an answer that is a document.
func (c *Client) text(ctx context.Context, method, path string) ([]byte, error) {
	body, err := c.ask(ctx, method, path)
	if err != nil {
		return nil, err
	}
	return readAll(body)
}

// ask returns the body of the answer.
func (c *Client) ask(ctx context.Context, method, path string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://gorun"+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := c.send(request)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// send returns the answer if it is of use, and otherwise what it says.
func (c *Client) send(request *http.Request) (*http.Response, error) {
	answer, err := c.http.Do(request)
	if err != nil {
		ctx := request.Context()
		if limit, ok := ctx.Deadline(); ok && isTimeout(err) && !time.Now().Before(limit) {
			<-ctx.Done() // a connection with the same limit may have noticed it first
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if hasBroken(err) || errors.Is(err, io.EOF) {
			return nil, errors.New("it has closed the connection: it ends, or has too many others to answer")
		}
		return nil, innermost(err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	text, err := readAll(answer.Body)
	switch {
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusMethodNotAllowed:
		return nil, errors.New("it does not know this request: it is another version of gorun")
	case err != nil:
		return nil, err
	}
	if _, err := parseReply(text); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("its answer is %s", answer.Status)
}

// innermost returns an error of the network without what package http says about it.
func innermost(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}

func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

func readAll(body io.ReadCloser) ([]byte, error) {
	defer func() { _ = body.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(body, status.MaxSize+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > status.MaxSize:
		return nil, fmt.Errorf("its answer has more than %d bytes", status.MaxSize)
	}
	return text, nil
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
