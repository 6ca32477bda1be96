// Package richtext cleans the HTML that the service stores and shows: the texts of contracts and announcements (rule
// SEC-36).
//
// The one idea: HTML is cleaned when it is written, and its row records the policy. When it is read, HTML of an older
// policy is cleaned again, so a stricter policy applies at once to every row. The library bluemonday implements the
// rules and is hidden behind this package.
//
// Start reading at Policy.Shown.
package richtext

import (
	"regexp"

	"github.com/microcosm-cc/bluemonday"
)

// version is incremented with every change of the policy.
const version = "1"

// Policy cleans HTML. It is safe for concurrent use.
type Policy struct {
	// ID identifies the policy; a row stores it beside its HTML. Another version or another base of the images is
	// another policy.
	ID    string
	rules *bluemonday.Policy
}

var (
	language  = regexp.MustCompile(`^[a-zA-Z]{2,3}(-[a-zA-Z0-9]{2,8})*$`)
	direction = regexp.MustCompile(`(?i)^(rtl|ltr|auto)$`)
	open      = regexp.MustCompile(`(?i)^(|open)$`)
	scope     = regexp.MustCompile(`(?i)^(row|col)(group)?$`)
	// below a base: segments that do not begin with a dot, no query, no fragment
	path = `(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$`
)

// New returns the policy that allows only images below imageBase, an absolute URL or an absolute path without a
// trailing slash; if it is empty, no images. It allows text formatting, tables, and links of http, https and mailto,
// which search engines do not follow. It allows neither style, class, id, name, forms nor frames. So a text cannot
// imitate the page around it or define a name that a script of that page uses.
func New(imageBase string) *Policy {
	p := bluemonday.NewPolicy()
	p.AllowAttrs("dir").Matching(direction).Globally()
	p.AllowAttrs("lang").Matching(language).Globally()
	p.AllowAttrs("title").Matching(bluemonday.Paragraph).Globally()

	p.RequireParseableURLs(true)
	p.AllowURLSchemes("mailto", "http", "https")
	p.AllowAttrs("href").OnElements("a")
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)

	p.AllowElements("article", "aside", "blockquote", "br", "div", "figcaption", "figure", "h1", "h2", "h3", "h4", "h5",
		"h6", "hgroup", "hr", "p", "section", "span", "summary", "wbr", "abbr", "b", "bdi", "bdo", "cite", "code", "del",
		"dfn", "em", "i", "ins", "kbd", "mark", "pre", "q", "rp", "rt", "ruby", "s", "samp", "small", "strike", "strong",
		"sub", "sup", "tt", "u", "var")
	p.AllowAttrs("open").Matching(open).OnElements("details")
	p.AllowAttrs("datetime").Matching(bluemonday.ISO8601).OnElements("time")
	p.AllowLists()

	p.AllowElements("table", "caption", "colgroup", "col", "thead", "tbody", "tfoot", "tr", "td", "th")
	p.AllowAttrs("align").Matching(bluemonday.CellAlign).OnElements("col", "colgroup", "thead", "tbody", "tfoot", "tr",
		"td", "th")
	p.AllowAttrs("valign").Matching(bluemonday.CellVerticalAlign).OnElements("thead", "tbody", "tfoot", "tr", "td",
		"th")
	p.AllowAttrs("span").Matching(bluemonday.Integer).OnElements("col", "colgroup")
	p.AllowAttrs("colspan", "rowspan").Matching(bluemonday.Integer).OnElements("td", "th")
	p.AllowAttrs("scope").Matching(scope).OnElements("th")

	if imageBase != "" {
		p.AllowRelativeURLs(imageBase[0] == '/')
		p.AllowAttrs("src").Matching(regexp.MustCompile("^" + regexp.QuoteMeta(imageBase) + path)).OnElements("img")
		p.AllowAttrs("alt").Matching(bluemonday.Paragraph).OnElements("img")
		p.AllowAttrs("height", "width").Matching(bluemonday.NumberOrPercent).OnElements("img")
	}
	return &Policy{ID: version + " " + imageBase, rules: p}
}

// Clean removes from HTML what the policy does not allow. The text of removed elements stays, except that of scripts
// and styles.
func (p *Policy) Clean(html string) string { return p.rules.Sanitize(html) }

// Shown returns stored HTML for display: cleaned again if by names another policy.
func (p *Policy) Shown(html, by string) string {
	if by == p.ID {
		return html
	}
	return p.Clean(html)
}
