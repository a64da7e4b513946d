package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Pages reads all Secrets in protobuf, 500 at a time, and throws them away: the
// least that a start with all of them can cost. It opens a connection for it.
func (l *Lab) Pages(ctx context.Context) (took time.Duration, err error) {
	begin := time.Now()
	raw, err := l.Raw()
	if err != nil {
		return 0, err
	}
	for token := ""; ; {
		query := url.Values{"limit": {"500"}, "continue": {token}}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, raw.server+"/api/v1/secrets?"+query.Encode(), nil)
		if err != nil {
			return 0, fmt.Errorf("reading a page of Secrets: %w", err)
		}
		request.Header.Set("Accept", runtime.ContentTypeProtobuf)
		request.Header.Set("Accept-Encoding", "identity") // else the API server compresses, which costs it more than all the rest
		if token, err = raw.page(request); err != nil {
			return 0, fmt.Errorf("reading a page of Secrets: %w", err)
		}
		if token == "" {
			return time.Since(begin), nil
		}
	}
}

// page reads one page, and says how to ask for the next one.
func (r *Raw) page(request *http.Request) (token string, err error) {
	response, err := r.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", errors.New(response.Status)
	}
	head := make([]byte, 4<<10) // more than what comes before the first Secret
	n, err := io.ReadFull(response.Body, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return "", err
	}
	return continueToken(head[:n])
}

// continueToken reads the head of a list in Kubernetes' protobuf: four bytes, a
// message runtime.Unknown with the type (1) and the list (2), which begins with
// its metadata (1).
func continueToken(head []byte) (string, error) {
	var meta metav1.ListMeta
	rest := head[min(4, len(head)):]
	typeMeta, rest := field(rest, 1)
	list, rest := field(rest, 2)
	if list == nil {
		list = rest // not all of it is there
	}
	listMeta, _ := field(list, 1)
	if typeMeta == nil || listMeta == nil {
		return "", errors.New("it is no list in protobuf")
	}
	err := meta.Unmarshal(listMeta)
	return meta.Continue, err
}

// field takes apart the field of a number at the begin of a message, whose type
// has a length, and what comes behind it; where it is longer than what is there,
// its content is what comes behind.
func field(message []byte, number byte) (content, rest []byte) {
	if len(message) == 0 || message[0] != number<<3|2 {
		return nil, message
	}
	length, n := binary.Uvarint(message[1:])
	content = message[1+max(n, 0):]
	if n <= 0 || length > uint64(len(content)) {
		return nil, content
	}
	return content[:length], content[length:]
}
