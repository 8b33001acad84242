package etcd

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

const (
	docLimit = 1 << 20 // bytes of a document's text; etcd itself refuses requests of more than 1.5 MiB
	docPlain = 4 << 10 // bytes of text that are not worth packing
)

// gzipped is how packed documents begin, and JSON does not.
var gzipped = []byte{0x1f, 0x8b}

// pack makes a document's text smaller if it is long, as those are that every node reads: the rounds of many nodes.
func pack(text []byte) ([]byte, error) {
	switch {
	case len(text) > docLimit:
		return nil, fmt.Errorf("a document of %d bytes: want at most %d", len(text), docLimit)
	case len(text) <= docPlain:
		return text, nil
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// unpack returns the text of a document.
func unpack(value []byte) ([]byte, error) {
	text := value
	if bytes.HasPrefix(value, gzipped) {
		var all bytes.Buffer
		all.Grow(min(5*len(value), docLimit)) // most often enough
		r, err := gzip.NewReader(bytes.NewReader(value))
		if err == nil {
			_, err = all.ReadFrom(io.LimitReader(r, docLimit+1))
		}
		if err != nil {
			return nil, fmt.Errorf("not a document of gorun's: %w", err)
		}
		text = all.Bytes()
	}
	if len(text) > docLimit {
		return nil, fmt.Errorf("a document of more than %d bytes", docLimit)
	}
	return text, nil
}
