-- A table for dp-subn over the OMOP common data model, version 5.4 (PostgreSQL): one row for each person, with the
-- person's latest visit. A person may have one row, so the view picks it, and party.toml names person_id as person_key:
--
--   [datasets.omop]
--   source = "postgresql+psycopg://reader:PASSWORD@localhost/omop"
--   query = "SELECT * FROM subn_visits"
--   schema = "schema.json"
--   person_key = "person_id"
--   epsilon_total = "1"
--
-- Codes become words here, so that the schema holds no number that differs between vocabularies.

CREATE VIEW subn_visits AS
WITH latest AS (
  SELECT visit.*,
         row_number() OVER (PARTITION BY person_id ORDER BY visit_start_date DESC, visit_occurrence_id DESC) AS place
  FROM visit_occurrence AS visit
),
main_condition AS (
  SELECT visit_occurrence_id, condition_source_value,
         count(*) OVER (PARTITION BY visit_occurrence_id) AS conditions,
         row_number() OVER (PARTITION BY visit_occurrence_id ORDER BY condition_occurrence_id) AS place
  FROM condition_occurrence
)
SELECT person.person_id,
       CASE person.gender_concept_id WHEN 8507 THEN 'male' WHEN 8532 THEN 'female' END AS sex,
       CAST(extract(year FROM latest.visit_start_date) AS integer) - person.year_of_birth AS age,
       CASE latest.visit_concept_id
         WHEN 9201 THEN 'inpatient' WHEN 9202 THEN 'outpatient' WHEN 9203 THEN 'emergency'
         WHEN 262 THEN 'emergency, then inpatient' ELSE 'other' END AS visit,
       latest.visit_start_date AS visit_start,
       latest.visit_end_date - latest.visit_start_date AS days,
       left(main_condition.condition_source_value, 3) AS condition,
       coalesce(main_condition.conditions, 0) AS conditions,
       death.person_id IS NOT NULL AS died
FROM person
JOIN latest ON latest.person_id = person.person_id AND latest.place = 1
LEFT JOIN main_condition
  ON main_condition.visit_occurrence_id = latest.visit_occurrence_id AND main_condition.place = 1
LEFT JOIN death ON death.person_id = person.person_id;
