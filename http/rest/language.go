package rest

import "strings"

// LanguageOf is the supported language (D-GEN-16) of a tag, "" when there is none: tr, en or
// ar, in any case and with any region.
func LanguageOf(tag string) string {
	tag, _, _ = strings.Cut(strings.TrimSpace(tag), "-")
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

// AcceptLanguage is the first supported tag of an Accept-Language header. Its
// order decides; a weight matters only where it is zero, which means "not this".
func AcceptLanguage(header string) string {
	for part := range strings.SplitSeq(header, ",") {
		tag, params, _ := strings.Cut(part, ";")
		if _, q, ok := strings.Cut(params, "q="); ok && strings.Trim(q, "0. ") == "" {
			continue
		}
		if l := LanguageOf(tag); l != "" {
			return l
		}
	}
	return ""
}
