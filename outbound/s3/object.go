package s3

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"castellan/domain/kit/blob"
)

// headBytes are kept of each open file: the endpoint of public files reads the first bytes and then begins again.
const headBytes = 512

// object is an open file. It is read from the answer that opened it. After a seek to another place the rest is
// requested; if the file was replaced meanwhile, reading fails.
type object struct {
	store *Store
	ctx   context.Context
	info  blob.Info

	head []byte // the first bytes of the file
	next int64  // the place of the next read
	body io.ReadCloser
	at   int64 // the place of the body
}

var errReplaced = errors.New("the file was replaced while it was read")

func (o *object) readHead() error {
	o.head = make([]byte, min(o.info.Size, headBytes))
	n, err := io.ReadFull(o.body, o.head)
	o.at = int64(n)
	return err
}

func (o *object) Read(p []byte) (n int, err error) {
	if o.next >= o.info.Size {
		return 0, io.EOF
	}
	if o.next < int64(len(o.head)) {
		n = copy(p, o.head[o.next:])
		o.next += int64(n)
		return n, nil
	}
	if o.at != o.next {
		if err := o.open(); err != nil {
			return 0, blob.Failed("read", err)
		}
	}
	n, err = o.body.Read(p)
	o.next += int64(n)
	o.at = o.next
	switch {
	case err == io.EOF && o.next < o.info.Size:
		err = io.ErrUnexpectedEOF
	case err == nil || err == io.EOF:
		return n, err
	}
	return n, blob.Failed("read", err)
}

// open requests the file from the place of the next read on.
func (o *object) open() error {
	_ = o.body.Close()
	o.at = -1
	r, err := o.store.send(o.ctx, request{method: http.MethodGet, key: o.info.Key, header: http.Header{
		"Range":    {"bytes=" + strconv.FormatInt(o.next, 10) + "-"},
		"If-Match": {`"` + o.info.Version + `"`},
	}})
	if refused, is := errors.AsType[*refusal](err); is && refused.status == http.StatusPreconditionFailed {
		return errReplaced
	}
	if err != nil {
		return err
	}
	o.body = r.Body
	if version(r.Header.Get("ETag")) != o.info.Version {
		return errReplaced
	}
	if r.StatusCode != http.StatusPartialContent || r.ContentLength != o.info.Size-o.next {
		return errors.New("the server sent another part than the requested one")
	}
	o.at = o.next
	return nil
}

func (o *object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.next
	case io.SeekEnd:
		offset += o.info.Size
	}
	if offset < 0 {
		return 0, errors.New("seek before the start of a file")
	}
	o.next = offset
	return offset, nil
}

func (o *object) Close() error { return o.body.Close() }
