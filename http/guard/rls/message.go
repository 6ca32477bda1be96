package rls

import (
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// request is a RateLimitRequest. Members that it does not have are ignored, as protobuf demands.
type request struct {
	domain      string
	descriptors []descriptor
}

// descriptor is a RateLimitDescriptor. 0 hits count nothing.
type descriptor struct {
	entries []entry
	hits    uint64
}

type entry struct{ key, value string }

// fields calls do with the number and the value of each field: v, or text if it is not nil. It returns false if the
// message is malformed or do returns false.
func fields(b []byte, do func(number protowire.Number, v uint64, text []byte) bool) bool {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		var v uint64
		var text []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			text, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 || !do(number, v, text) {
			return false
		}
		b = b[n:]
	}
	return true
}

// readRequest returns false for a message that is malformed, without entries or with negative hits.
func readRequest(b []byte) (q request, ok bool) {
	hits := uint64(1)
	var own []bool
	ok = fields(b, func(number protowire.Number, v uint64, text []byte) bool {
		switch number {
		case 1:
			q.domain = string(text)
		case 2:
			d, owns, ok := readDescriptor(text)
			q.descriptors, own = append(q.descriptors, d), append(own, owns)
			return ok
		case 3:
			hits = max(1, v) // 0 is the default
		}
		return true
	})
	for i := range q.descriptors {
		if !own[i] {
			q.descriptors[i].hits = hits
		}
	}
	return q, ok
}

// readDescriptor reads a descriptor; owns reports whether it has hits of its own.
func readDescriptor(b []byte) (d descriptor, owns, ok bool) {
	ok = fields(b, func(number protowire.Number, v uint64, text []byte) bool {
		switch number {
		case 1:
			var e entry
			ok := fields(text, func(number protowire.Number, _ uint64, text []byte) bool {
				switch number {
				case 1:
					e.key = string(text)
				case 2:
					e.value = string(text)
				}
				return true
			})
			d.entries = append(d.entries, e)
			return ok && e.key != "" && utf8.ValidString(e.key)
		case 3:
			d.hits, owns = 0, true
			return fields(text, func(number protowire.Number, v uint64, _ []byte) bool {
				if number == 1 {
					d.hits = v
				}
				return true
			})
		case 4:
			return v == 0 // hits cannot be given back
		}
		return true
	})
	return d, owns, ok && len(d.entries) > 0
}

// appendResponse appends a RateLimitResponse: the code of all, and a status for each descriptor.
func appendResponse(b []byte, states []state) []byte {
	const allow, refuse = 1, 2
	code := func(allowed bool) uint64 {
		if allowed {
			return allow
		}
		return refuse
	}
	all := true
	for _, s := range states {
		all = all && s.Allowed
	}
	b = appendNumber(b, 1, code(all))
	for _, s := range states {
		one := appendNumber(nil, 1, code(s.Allowed))
		if s.Limit > 0 {
			one = appendNumber(one, 3, uint64(min(s.Remaining, math.MaxUint32)))
			reset := appendNumber(nil, 1, uint64(s.ResetMs/1000))
			one = appendText(one, 4, appendNumber(reset, 2, uint64(s.ResetMs%1000*1e6)))
		}
		b = appendText(b, 2, one)
	}
	return b
}

func appendNumber(b []byte, number protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), v)
}

func appendText(b []byte, number protowire.Number, text []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), text)
}
