package address

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The forms of a tag rule, in the configuration: NoTag, NumberTag, or MemoTag with a number of bytes.
const (
	NoTag     = "none"
	NumberTag = "number" // from 0 to 4294967295, in its shortest form
	MemoTag   = "memo:"  // text of at most so many bytes
)

// maxTag is the longest tag of any network, in bytes.
const maxTag = 128

// builtInTags are the rules of networks, unless configured otherwise. Networks of Ethereum's family have NoTag.
var builtInTags = map[string]string{"BTC": NoTag, "SOL": NoTag, "TRX": NoTag, "TRC20": NoTag, "XRP": NumberTag,
	"XLM": MemoTag + "28", "TON": MemoTag + "120"}

// Tags are the rules of tags by network code, as configured. A network without a rule has the built-in one, or a memo
// of up to 128 bytes. The zero value has the built-in rules.
type Tags map[string]string

func memoBytes(rule string) (most int, ok bool) {
	text, is := strings.CutPrefix(rule, MemoTag)
	most, err := strconv.Atoi(text)
	return most, is && err == nil && most > 0 && most <= maxTag
}

func (t Tags) rule(network string) string {
	if rule, configured := t[network]; configured {
		return rule
	}
	if rule, known := builtInTags[network]; known {
		return rule
	}
	if builtIn[network] == "evm" {
		return NoTag
	}
	return MemoTag + strconv.Itoa(maxTag)
}

// Problem returns why a tag is not valid on a network, for INVALID_FIELD; "" if it is valid or empty. On a network with
// tags the tag is a part of the destination, so no two valid tags are spellings of each other.
func (t Tags) Problem(network, tag string) string {
	if tag == "" {
		return ""
	}
	rule := t.rule(network)
	if rule == NoTag {
		return "must be empty: addresses of this network have no tag"
	}
	if rule == NumberTag {
		n, err := strconv.ParseUint(tag, 10, 32)
		if err != nil || strconv.FormatUint(n, 10) != tag {
			return "must be a whole number from 0 to 4294967295, without leading zeros"
		}
		return ""
	}
	most, _ := memoBytes(rule)
	if len(tag) > most {
		return fmt.Sprintf("must be at most %d bytes", most)
	}
	for _, r := range tag {
		if r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsGraphic(r) || unicode.In(r, unicode.Cf) {
			return "must not contain spaces, control or invisible characters"
		}
	}
	return ""
}
