use super::*;

/// A page that fits together: `rows` rows, `classes` classes, every fifth row a suspect.
fn sample(rows: usize, classes: usize) -> Page {
    let labels: Vec<usize> = (0..rows).map(|row| row % classes).collect();
    let values: Vec<f32> = (0..rows).map(|row| row as f32 / 7.0).collect();
    let suspects = (0..rows).step_by(5).map(|row| Suspect {
        row,
        score: 0.9,
        suggested: (row + 1) % classes,
        confidence: 0.75,
        agreement: 1.0,
        reasons: vec!["margin -1.5".into()],
    });
    Page {
        version: "1.2.3".into(),
        source: "people.csv".into(),
        target: "label".into(),
        target_column: Some(1),
        header: Some(vec!["age".into(), "label".into()]),
        cells: vec![
            values.iter().map(f32::to_string).collect(),
            labels.iter().map(|label| format!("c{label}")).collect(),
        ],
        numeric: vec![true, false],
        classes: (0..classes).map(|class| format!("c{class}")).collect(),
        first_line: 2,
        components: [values.clone(), values.clone()],
        margins: values.clone(),
        scores: values,
        suspects: suspects.collect(),
        truncation: Some(-0.5),
        confusion: vec![vec![1; classes]; classes],
        noise: vec![vec![1.0 / classes as f64; classes]; classes],
        model: vec![("method".into(), "truncated".into())],
        headline: vec![("rows".into(), rows.to_string())],
        labels,
    }
}

fn written(page: &Page) -> String {
    let mut html = Vec::new();
    write_page(page, &mut html).unwrap();
    String::from_utf8(html).unwrap()
}

/// The text of the element that holds the data.
fn data(html: &str) -> &str {
    let from = html.find("<script type=\"application/json\"").unwrap();
    let start = from + html[from..].find('>').unwrap() + 1;
    &html[start..start + html[start..].find("</script>").unwrap()]
}

#[test]
fn the_data_come_back_from_the_page() {
    for classes in [2, 12] {
        let page = sample(30, classes);
        assert_eq!(serde_json::from_str::<Page>(data(&written(&page))).unwrap(), page);
    }
}

#[test]
fn without_suspects_or_cells_there_is_still_a_page() {
    let page = Page { suspects: vec![], ..sample(6, 2) };
    assert!(written(&page).contains("\"suspects\":[]"));
    let page = Page { cells: vec![], numeric: vec![], ..sample(6, 2) };
    assert!(written(&page).contains("\"cells\":[]"));
    assert!(written(&Page::default()).ends_with("</html>\n"));
}

#[test]
fn hostile_text_stays_in_its_element() {
    let hostile = "</script><script>alert(1)</script><!--\u{2028}&\u{202e}🎲{{script}}";
    let mut page = sample(10, 2);
    page.classes[0] = hostile.into();
    page.cells[0][3] = hostile.into();
    page.source = hostile.into();
    page.header.as_mut().unwrap()[0] = hostile.into();
    page.suspects[0].reasons.push(hostile.into());
    page.model.push((hostile.into(), hostile.into()));
    let html = written(&page);
    assert!(!html.contains("alert(1)</script"));
    assert_eq!(html.matches("</script>").count(), 3);
    assert_eq!(serde_json::from_str::<Page>(data(&html)).unwrap(), page);
}

#[test]
fn numbers_that_json_does_not_know_become_null_and_nan() {
    let mut page = sample(10, 2);
    page.margins[0] = f32::NAN;
    page.scores[1] = f32::INFINITY;
    page.components[1][2] = f32::NEG_INFINITY;
    page.suspects[0].score = f64::NAN;
    page.noise[0][0] = f64::NAN;
    page.truncation = Some(f64::NEG_INFINITY);
    let back: Page = serde_json::from_str(data(&written(&page))).unwrap();
    assert!(back.margins[0].is_nan() && back.scores[1].is_nan() && back.components[1][2].is_nan());
    assert!(back.suspects[0].score.is_nan() && back.noise[0][0].is_nan());
    assert_eq!(back.truncation, None);
}

type Damage = fn(&mut Page);

#[test]
fn lists_that_do_not_fit_are_refused_by_name() {
    let refusals: [(Damage, &str); 10] = [
        (|page| page.margins.truncate(9), "margins of the page has 9 values, expected 10, one for each label"),
        (|page| page.scores.clear(), "scores of the page has 0 values, expected 10, one for each label"),
        (
            |page| page.components[1].push(0.0),
            "second component of the page has 11 values, expected 10, one for each label",
        ),
        (
            |page| page.cells[1].truncate(4),
            "cells of the page has 4 cells in column 1 (counted from 0), expected 10, one for each label",
        ),
        (|page| page.numeric.truncate(1), "numeric of the page has 1 values, expected 2, one for each column"),
        (|page| page.header = Some(vec![]), "header of the page has 0 values, expected 2, one for each column"),
        (|page| page.target_column = Some(2), "target_column of the page has column 2, expected one below 2"),
        (|page| page.labels[3] = 2, "labels of the page has class 2, expected classes below 2"),
        (|page| page.suspects[1].row = 0, "suspects of the page has row 0 twice, expected each row once"),
        (|page| page.noise[1].truncate(1), "noise of the page has rows of 1 values, expected 2 x 2 values"),
    ];
    for (damage, message) in refusals {
        let mut page = sample(10, 2);
        damage(&mut page);
        let mut html = Vec::new();
        assert_eq!(write_page(&page, &mut html).unwrap_err().to_string(), message);
        assert!(html.is_empty());
    }
}

#[test]
fn the_page_names_no_address_and_its_scripts_end_where_they_should() {
    let script = SCRIPTS.concat();
    for text in [CHARTS, &script] {
        let lower = text.to_lowercase();
        assert!(!lower.contains("</script") && !lower.contains("<!--") && !text.contains('\r'));
    }
    for forbidden in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"]
    {
        assert!(!script.contains(forbidden) && !DOCUMENT.contains(forbidden), "{forbidden}");
    }
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
}

#[test]
fn the_key_follows_the_data() {
    let key = |page: &Page| {
        let html = written(page);
        let start = html.find("data-key=\"").unwrap() + 10;
        html[start..start + 64].to_string()
    };
    let page = sample(10, 2);
    let other = Page { truncation: None, ..page.clone() };
    assert_eq!(key(&page), key(&page.clone()));
    assert_ne!(key(&page), key(&other));
}
