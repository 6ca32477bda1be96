package rest

import (
	"strconv"
	"strings"
)

// LanguageOf is the supported language (D-GEN-16) of a tag, "" when there is none: tr, en or
// ar, in any case and with any region.
func LanguageOf(tag string) string {
	tag = strings.TrimSpace(tag)
	if i := strings.IndexAny(tag, "-_"); i >= 0 { // tr-TR, and tr_TR as systems name their locales
		tag = tag[:i]
	}
	if len(tag) != 2 {
		return ""
	}
	for _, l := range [...]string{"en", "tr", "ar"} {
		if strings.EqualFold(tag, l) {
			return l
		}
	}
	return ""
}

// AcceptLanguage is the supported language of an Accept-Language header with the highest weight (RFC 9110, 12.5.4);
// among equal weights the first. It is "" if no supported language has a weight above zero: "*" names none.
func AcceptLanguage(header string) (language string) {
	most := 0
	for part := range strings.SplitSeq(header, ",") {
		tag, params, _ := strings.Cut(part, ";")
		l := LanguageOf(tag)
		if l == "" {
			continue
		}
		if w := weight(params); w > most {
			language, most = l, w
		}
	}
	return language
}

// wholeWeight is the weight 1 in thousandths.
const wholeWeight = 1000

// weight returns the q of parameters in thousandths: 1000 without one, and 0 for one that cannot be read.
func weight(params string) int {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(p, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(q > 0 && q <= 1) {
			return 0
		}
		return max(1, int(q*wholeWeight))
	}
	return wholeWeight
}
