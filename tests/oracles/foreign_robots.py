"""Robots as other programs write them."""

ARM = """<?xml version="1.0"?>
<!-- a comment -->
<robot name="two.link arm">
  <material name="blue"><color rgba="0.2 0.4 0.6 1"/></material>
  <link name="base link"/>
  <link name="upper">
    <inertial>
      <origin xyz="0.1 0.02 -0.3" rpy="0.3 -0.8 1.2"/>
      <mass value="2.5"/>
      <inertia ixx="0.03" ixy="0.001" ixz="-0.002" iyy="0.04" iyz="0.003" izz="0.05"/>
    </inertial>
    <visual>
      <origin xyz="0 0 0.2" rpy="0 1.5 0"/>
      <geometry><cylinder radius="0.05" length="0.4"/></geometry>
      <material name="blue"/>
    </visual>
    <visual><geometry><mesh filename="package://arm/upper.stl"/></geometry></visual>
  </link>
  <link name="lower">
    <inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <collision><geometry><box size="0.1 0.2 0.3"/></geometry></collision>
  </link>
  <link name="slider">
    <inertial>
      <origin xyz="0 0 0.1"/>
      <mass value="0.5"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/>
    </inertial>
    <visual>
      <geometry><sphere radius="0.1"/></geometry>
      <material name="own"><color rgba="1 0 0.5 1"/></material>
    </visual>
  </link>
  <link name="tool"/>
  <joint name="shoulder" type="revolute">
    <origin xyz="0 0 0.3" rpy="0.1 0.2 0.3"/>
    <parent link="base link"/><child link="upper"/>
    <axis xyz="0 1 1"/>
    <limit lower="-1.5" upper="2" effort="10" velocity="3"/>
    <dynamics damping="0.7" friction="0.2"/>
  </joint>
  <joint name="elbow" type="continuous">
    <origin xyz="0.4 0 0" rpy="1.5707963267948966 0 0"/>
    <parent link="upper"/><child link="lower"/>
  </joint>
  <joint name="lift" type="prismatic">
    <parent link="lower"/><child link="slider"/>
    <axis xyz="0 0 -1"/>
    <limit upper="0.4" effort="1" velocity="1"/>
  </joint>
  <joint name="flange" type="fixed">
    <origin xyz="0 0 0.25"/>
    <parent link="slider"/><child link="tool"/>
  </joint>
  <transmission name="ignored"><type>x</type></transmission>
</robot>
"""
