package comm

import (
	"context"
	"log/slog"
	"net"

	"github.com/gorun/gorun/comm/internal/store/filestore"
	"github.com/gorun/gorun/comm/internal/store/memstore"
	"github.com/gorun/gorun/comm/internal/store/tcpstore"
	"github.com/gorun/gorun/comm/store"
)

// The stores have the names that torch.distributed gives them.

const (
	// MaxStoreKey is the longest key of a [Store], in bytes.
	MaxStoreKey = store.MaxKey
	// MaxStoreValue is the longest value of a [Store], in bytes.
	MaxStoreValue = store.MaxValue
)

// ErrStoreClosed is the error of calls on a closed [Store], and of those that wait when it is closed.
var ErrStoreClosed = store.ErrClosed

// A Store is the small key-value space in which ranks find each other. [store.Store] documents its methods.
type Store = store.Store

// A MissingKeysError says which keys nobody had set when a Get or Wait of a [Store] ended.
type MissingKeysError = store.MissingKeysError

// A MemStore is a [Store] in the memory of this process, for ranks that are goroutines.
type MemStore = memstore.Store

// NewMemStore returns an empty store. Those that share it also share its Close.
func NewMemStore() *MemStore { return memstore.New() }

// NewPrefixStore returns a view of s that puts prefix before every key: see [store.NewPrefix].
func NewPrefixStore(s Store, prefix string) Store { return store.NewPrefix(s, prefix) }

// A FileStore is one handle of a [Store] in a directory that processes share, on one machine or several.
type FileStore = filestore.Store

// NewFileStore opens the store at path, and makes that directory, but not the one above it. It is an error if there is a file or a symbolic
// link, a directory of another user, one that others can write to, or one with other files.
func NewFileStore(path string) (*FileStore, error) { return filestore.Open(path) }

// A TCPStore is a [Store] that a [StoreServer] keeps, reached over one TCP connection.
type TCPStore = tcpstore.Client

// NewTCPStore connects to the server at addr, host:port, which has the same token. While there is no answer it tries again until ctx ends. A
// server with another token, or one that is not a store, is an error at once.
func NewTCPStore(ctx context.Context, addr string, token []byte) (*TCPStore, error) {
	return tcpstore.Dial(ctx, addr, tcpstore.Config{Token: token})
}

// A StoreServer keeps a store in memory for the [TCPStore] clients that have its token.
type StoreServer = tcpstore.Server

// ListenStore starts a server on addr, host:port; port 0 stands for a free port, a nil log discards. Without a token, or with one that can be
// guessed, it refuses an addr that other machines can reach.
func ListenStore(addr string, token []byte, log *slog.Logger) (*StoreServer, error) {
	return tcpstore.Listen(addr, tcpstore.Config{Token: token, Log: log})
}

// ServeStore starts a server on l, which its Close closes; a nil log discards. Without a token it turns away every connection from another
// machine.
func ServeStore(l net.Listener, token []byte, log *slog.Logger) *StoreServer {
	return tcpstore.Serve(l, tcpstore.Config{Token: token, Log: log})
}
